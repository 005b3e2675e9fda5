//! What becomes of the Machines of a set that is deleted.

use std::time::Duration;

use fleetwright_api::machine::MachineSet;
use kube::{ResourceExt, api::DeleteParams};
use tokio::time::sleep;

use super::{living, manifest, replicas, start};
use crate::group::testbed::Bed;

async fn deleted(params: &DeleteParams) -> Vec<fleetwright_api::machine::Machine> {
    let bed = Bed::start().await;
    let process = bed.process(start);
    bed.create::<MachineSet>(manifest("s", 3)).await;
    replicas(&bed, "s", 3).await;
    bed.api::<MachineSet>().delete("s", params).await.unwrap();
    bed.until("the set is gone", || async {
        bed.api::<MachineSet>().get_opt("s").await.unwrap().is_none().then_some(())
    })
    .await;
    sleep(Duration::from_mins(2)).await;
    let left = living(&bed).await;
    process.stop().await;
    left
}

#[tokio::test(start_paused = true)]
async fn machines_go_with_their_set() {
    assert!(deleted(&DeleteParams::background()).await.is_empty());
    assert!(deleted(&DeleteParams::foreground()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn machines_stay_when_the_user_says_so() {
    let left = deleted(&DeleteParams::orphan()).await;
    assert_eq!(left.len(), 3);
    assert!(left.iter().all(|machine| machine.owner_references().is_empty()));
}
