//! A set that grows and shrinks with every write harmed in every way: never one too many for
//! longer than a moment, never one lost.

use std::time::Duration;

use fleetwright_api::machine::MachineSet;
use kube::api::DeleteParams;
use tokio::time::sleep;

use super::{living, manifest, replicas, scale, start};
use crate::group::testbed::{Bed, Harm};

async fn life(bed: &Bed, number: usize, harm: Option<(usize, Harm)>) -> usize {
    let name = format!("s-{number}");
    bed.writes.reset();
    if let Some((write, harm)) = harm {
        bed.writes.harm(write, harm);
    }
    let process = bed.process(start);
    bed.create::<MachineSet>(manifest(&name, 3)).await;
    for count in [3, 5, 2] {
        scale(bed, &name, count).await;
        replicas(bed, &name, count).await;
        // Longer than an echo is waited for.
        sleep(Duration::from_mins(6)).await;
        let living = living(bed).await.len();
        assert_eq!(living, usize::try_from(count).unwrap(), "{harm:?}");
    }
    let writes = bed.writes.count();
    let requests = std::mem::take(&mut *bed.requests.lock());
    let created = requests
        .iter()
        .filter(|request| request.starts_with("POST") && request.ends_with("/machines"))
        .count();
    assert!(created <= 6, "{harm:?}: {created}");
    process.stop().await;
    bed.api::<MachineSet>().delete(&name, &DeleteParams::background()).await.unwrap();
    bed.until("its Machines are gone", || async { bed.machines().await.is_empty().then_some(()) })
        .await;
    writes
}

#[tokio::test(start_paused = true)]
async fn every_write_may_go_wrong() {
    let bed = Bed::start().await;
    let writes = life(&bed, 0, None).await;
    assert!((8..40).contains(&writes), "{writes}");
    let mut number = 0;
    for harm in [Harm::CrashBefore, Harm::CrashAfter, Harm::LoseAnswer, Harm::Refuse] {
        for write in 0..writes {
            number += 1;
            life(&bed, number, Some((write, harm))).await;
        }
    }
}
