//! Tags of instances.

use std::collections::BTreeMap;

use fleetwright_cloud::{
    Tag,
    tags::{missing_tags, resource_tags, without_repetitions},
};
use serde_json::{Value, json};

use crate::row::Row;
use crate::runners::{Outcome, Runner, Use};

/// The runner.
pub(super) const RUNNER: Runner = Runner {
    file: "aws-tags.json",
    tables: &[
        ("build_cases", Use::Rows(build)),
        ("dedupe_cases", Use::Rows(dedupe)),
        ("correct_existing_cases", Use::Rows(correct_existing)),
    ],
};

fn tags(pairs: &Value) -> Vec<Tag> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pairs = pairs.as_array().into_iter().flatten();
    pairs.map(|pair| Tag::new(text(&pair[0]), text(&pair[1]))).collect()
}

fn pairs(tags: &[Tag]) -> Value {
    tags.iter().map(|tag| json!([tag.key, tag.value])).collect()
}

/// All tags of a Machine's instance: those of the launch, then those of the Machine.
fn of_machine(spec: &[Tag], infra: &[Tag], cluster: &str, machine: &str) -> Vec<Tag> {
    let launch = resource_tags(spec, infra, cluster);
    without_repetitions(launch.into_iter().chain([Tag::name(machine)]))
}

fn build(row: &Row<'_>) -> Outcome {
    let inputs = &row.context()["inputs"];
    let input = |key: &str| inputs[key].as_str().unwrap_or_default();
    let (spec, infra) = (tags(row.get("machine_tags")), tags(row.get("infra_tags")));
    let found = of_machine(&spec, &infra, input("clusterID"), input("machineName"));
    Outcome::equal(row.get("expect"), &pairs(&found))
}

fn dedupe(row: &Row<'_>) -> Outcome {
    Outcome::equal(row.get("expect"), &pairs(&without_repetitions(tags(row.get("input")))))
}

fn correct_existing(row: &Row<'_>) -> Outcome {
    let map = |value: &Value| -> BTreeMap<String, String> {
        serde_json::from_value(value.clone()).unwrap_or_default()
    };
    let names = &row.context()["correct_existing_cases_ids"];
    let name = |key: &str| names[key].as_str().unwrap_or_default();
    let extra: Vec<Tag> = map(row.get("desired_extra"))
        .into_iter()
        .map(|(key, value)| Tag::new(key, value))
        .collect();
    let wanted = of_machine(&extra, &[], name("clusterID"), name("machineName"));
    let missing = missing_tags(&map(row.get("instance_tags")), &wanted);
    Outcome::equal(row.get("expect_create_tags"), &Value::from(!missing.is_empty()))
}
