//! An account that is brought back from its journal.

use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::aws::Entry;

#[tokio::test(start_paused = true)]
async fn the_journal_makes_the_same_account_again() {
    let cloud = Cloud::new();
    let kept: Arc<Mutex<Vec<Entry>>> = Arc::default();
    let journal = Arc::clone(&kept);
    cloud.aws.keep_journal(move |entry| journal.lock().push(entry.clone()));

    let group = "Action=CreatePlacementGroup&GroupName=g&Strategy=spread";
    cloud.call(group).await.unwrap();
    let placed = cloud.run(2, "&Placement.GroupName=g&ClientToken=one").await;
    cloud.pass(7).await;
    // What is refused draws on the same chance, and counts.
    code(cloud.call(&cloud.launch(8, "&Placement.GroupName=g")).await);
    let others = cloud.run(1, "").await;
    cloud.call(&format!("Action=TerminateInstances{}", ids(&others))).await.unwrap();
    let tagged = format!("Action=CreateTags&ResourceId.1={}&Tag.1.Key=a&Tag.1.Value=b", placed[0]);
    cloud.call(&tagged).await.unwrap();
    let struck = Request::post(format!("http://sim/_fleetwright/instances/{}", placed[1]))
        .body(Bytes::from_static(br#"{"strike": "stop"}"#))
        .unwrap();
    assert_eq!(cloud.aws.clone().oneshot(struck).await.unwrap().status(), 200);
    cloud.describe("").await;

    let again = Cloud::new();
    let entries = kept.lock().clone();
    assert_eq!(entries.len(), 7, "reads are not kept: {entries:?}");
    for entry in &entries {
        let line = serde_json::to_string(entry).unwrap();
        again.aws.replay(&serde_json::from_str(&line).unwrap());
    }
    cloud.pass(30).await;
    let (was, is) = (cloud.describe("").await, again.describe("").await);
    let without_request = |text: &str| text.split("<reservationSet>").nth(1).unwrap().to_owned();
    assert_eq!(without_request(&is), without_request(&was));
    assert!(is.contains("<name>stopped</name>") && is.contains("<name>terminated</name>"));
    // A token is still known, and the next identifier is a new one.
    assert_eq!(again.run(2, "&Placement.GroupName=g&ClientToken=one").await, placed);
    let next = again.run(1, "").await;
    assert!(!is.contains(&next[0]));
}
