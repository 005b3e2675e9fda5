//! The life of a group with every write harmed in every way: nothing leaks, nothing doubles,
//! nothing sticks.

use std::time::Duration;

use fleetwright_api::placement::AWSPlacementGroup;
use serde_json::json;
use tokio::time::sleep;

use super::{delete, gone, managed, manifest, start};
use crate::group::testbed::{Bed, Harm};

/// A group is made, let be, and deleted; another becomes unmanaged and stays. Each life has names
/// of its own. Says how many writes it took.
async fn life(bed: &Bed, number: usize, harm: Option<(usize, Harm)>) -> usize {
    let (goes, stays) = (format!("goes-{number}"), format!("stays-{number}"));
    bed.writes.reset();
    if let Some((write, harm)) = harm {
        bed.writes.harm(write, harm);
    }
    let process = bed.process(start);
    bed.create::<AWSPlacementGroup>(manifest(&goes, &managed("Cluster"))).await;
    bed.create::<AWSPlacementGroup>(manifest(&stays, &managed("Spread"))).await;
    for name in [&goes, &stays] {
        bed.until(&format!("{name} is ready"), || async {
            let group = bed.group(name).await?;
            let status = group.status?;
            let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready")?;
            (ready.status == "True").then_some(())
        })
        .await;
    }
    delete(bed, &goes).await;
    bed.merge::<AWSPlacementGroup>(
        &stays,
        json!({"spec": {"managementSpec": {"managementState": "Unmanaged"}}}),
    )
    .await;
    gone(bed, &goes).await;
    bed.until("the other is let go", || async {
        let group = bed.group(&stays).await?;
        let remembered = group.status.clone()?.management_state?;
        (remembered.as_str() == "Unmanaged" && group.metadata.finalizers.is_none()).then_some(())
    })
    .await;
    sleep(Duration::from_mins(2)).await;
    let writes = bed.writes.count();
    process.stop().await;
    let left: Vec<String> = bed.cloud.state().groups.keys().cloned().collect();
    assert_eq!(left, std::slice::from_ref(&stays), "{harm:?}");
    let mut history = std::mem::take(&mut bed.cloud.state().history);
    history.sort();
    let wanted = [format!("made {goes}"), format!("made {stays}"), format!("removed {goes}")];
    assert_eq!(history, wanted, "{harm:?}");
    delete(bed, &stays).await;
    bed.cloud.state().groups.clear();
    writes
}

/// A life with each write harmed in each way.
async fn lives(harms: &[Harm], lag: Duration) {
    let bed = Bed::start().await;
    bed.cloud.state().lag = lag;
    let writes = life(&bed, 0, None).await;
    assert!((8..40).contains(&writes), "{writes}");
    let mut number = 0;
    for harm in harms {
        for write in 0..writes {
            number += 1;
            life(&bed, number, Some((write, *harm))).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_write_may_go_wrong() {
    let all = [Harm::CrashBefore, Harm::CrashAfter, Harm::LoseAnswer, Harm::Refuse];
    lives(&all, Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn every_write_may_go_wrong_while_the_cloud_shows_groups_late() {
    let some = [Harm::CrashBefore, Harm::CrashAfter, Harm::LoseAnswer];
    lives(&some, Duration::from_secs(20)).await;
}
