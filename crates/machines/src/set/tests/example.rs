//! The manifests of `examples/placement-groups`, with groups and sets at work.

use std::{path::Path, time::Duration};

use fleetwright_api::{
    machine::{Machine, MachineSet},
    placement::AWSPlacementGroup,
};
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Secret};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{replicas, start};
use crate::{group::testbed::Bed, group::tests::start as start_groups};

fn manifests() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/placement-groups");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    texts.flat_map(|text| serde_saphyr::from_multiple::<Value>(&text).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_example_applies_in_any_order() {
    let bed = Bed::start().await;
    let process = bed.process(|process| {
        start(process);
        start_groups(process);
    });
    let secret = json!({"metadata": {"name": "aws-cloud-credentials"}});
    bed.create::<Secret>(secret).await;
    let mut manifests = manifests();
    // The groups come last.
    manifests.reverse();
    let mut kinds = Vec::new();
    for manifest in manifests {
        kinds.push(manifest["kind"].as_str().unwrap().to_owned());
        match manifest["kind"].as_str().unwrap() {
            "AWSPlacementGroup" => drop(bed.create::<AWSPlacementGroup>(manifest).await),
            "MachineSet" => drop(bed.create::<MachineSet>(manifest).await),
            "StatefulSet" => {
                let set: StatefulSet = serde_json::from_value(manifest).unwrap();
                let spec = set.spec.template.spec.unwrap();
                let spread = &spec.topology_spread_constraints.unwrap()[0];
                assert_eq!(spread.topology_key, fleetwright_api::names::label::PARTITION);
            }
            other => panic!("{other} is no part of the example"),
        }
    }
    assert_eq!(kinds.len(), 7);
    for (name, count) in [("cluster", 4), ("spread", 7), ("shards", 3)] {
        replicas(&bed, name, count).await;
    }
    sleep(Duration::from_secs(10)).await;
    for name in ["cluster", "spread", "shards"] {
        let group = bed.group(name).await.unwrap();
        assert_eq!(group.status.unwrap().conditions[0].status, "True", "{name}");
        let mine = |machine: &&Machine| {
            let spec = machine.spec.provider_spec.value.as_ref().unwrap();
            crate::group::named_group(spec) == Some(name)
        };
        assert!(bed.machines().await.iter().filter(mine).count() >= 3);
    }
    process.stop().await;
}
