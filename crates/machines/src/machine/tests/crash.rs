//! The process ends, or loses an answer, before and after every write of a life.

use fleetwright_api::machine::MachineSet;

use super::{gang::assert_one_to_one, *};
use crate::group::testbed::Harm;

const HARMS: [Harm; 4] = [Harm::CrashBefore, Harm::CrashAfter, Harm::LoseAnswer, Harm::Refuse];

/// From nothing to Running and back.
async fn life(
    yard: Yard,
    count: u32,
    policy: Option<&str>,
    more: &Value,
    harm: Option<(usize, Harm)>,
) -> Yard {
    yard.bed.writes.reset();
    yard.ec2.reset();
    if let Some((write, harm)) = harm {
        yard.bed.writes.harm(write, harm);
    }
    let yard = yard.start();
    match policy {
        Some(policy) => {
            gang::gang(&yard, count, policy).await;
        }
        None => {
            for number in 0..count {
                yard.create(&format!("m{number}"), more.clone()).await;
            }
        }
    }
    for number in 0..count {
        yard.phase(&format!("m{number}"), "Running").await;
    }
    yard.bed
        .until("all are tagged", || async {
            let tagged = |instance: &fleetwright_cloud::Instance| instance.machine_uid().is_some();
            yard.ec2.alive().iter().all(tagged).then_some(())
        })
        .await;
    assert_one_to_one(&yard, count).await;
    for number in 0..count {
        yard.delete(&format!("m{number}")).await;
    }
    for number in 0..count {
        yard.gone(&format!("m{number}")).await;
    }
    yard.assert_clean(usize::try_from(count).unwrap()).await;
    if policy.is_some() {
        let sets = yard.bed.api::<MachineSet>();
        sets.delete("set", &DeleteParams::default()).await.unwrap();
    }
    yard.stop().await
}

async fn every_write(count: u32, policy: Option<&str>, more: Value) {
    let mut yard = life(Yard::new().await, count, policy, &more, None).await;
    let writes = yard.bed.writes.count();
    for write in 0..writes {
        // One harm for each write, another one for the next; one Machine gets them all.
        let harms = if count == 1 { &HARMS[..] } else { &HARMS[write % HARMS.len()..][..1] };
        for harm in harms {
            yard = life(yard, count, policy, &more, Some((write, *harm))).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_machine_survives_harm_to_every_write() {
    every_write(1, None, json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn a_gang_survives_harm_to_every_write() {
    every_write(3, Some("true"), json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn equals_survive_harm_to_every_write() {
    every_write(2, None, json!({})).await;
}

/// Ends between the end of the instance and that of its host are among them.
#[tokio::test(start_paused = true)]
async fn a_machine_on_its_own_host_survives_harm_to_every_write() {
    every_write(1, None, on_own_host()).await;
}
