//! What is filled in when a Machine or MachineSet is made.
//!
//! Only what is missing is written, so that fields this version does not know stay.

use fleetwright_admission::{Edit, Verdict};
use fleetwright_api::aws::AWSMachineProviderConfig;
use fleetwright_api::config::PlatformType;
use fleetwright_api::machine::ProviderSpec;
use fleetwright_api::names::label;
use serde_json::{Value, json};

use super::{Facts, platform};

/// The secret with what an instance boots with.
pub const USER_DATA_SECRET: &str = "worker-user-data";
/// The secret with credentials for AWS.
pub const CREDENTIALS_SECRET: &str = "aws-cloud-credentials";

/// The type of instance where none is said.
fn instance_type(architecture: &str) -> &'static str {
    match architecture {
        "arm64" => "m6g.large",
        _ => "m5.large",
    }
}

/// Fills in a Machine.
pub fn machine(object: Value, facts: &Facts) -> Verdict {
    let mut edit = Edit::new(object);
    let labelled = edit.get(&["metadata", "labels", label::CLUSTER]).is_some();
    if let (false, Some(cluster)) = (labelled, &facts.cluster) {
        edit.set(&["metadata", "labels", label::CLUSTER], json!(cluster));
    }
    provider_spec(edit, &["spec"], facts)
}

/// Fills in a MachineSet: what its Machines would be given, but for the cluster's label, which the
/// selector may not match.
pub fn machine_set(object: Value, facts: &Facts) -> Verdict {
    provider_spec(Edit::new(object), &["spec", "template", "spec"], facts)
}

fn provider_spec(mut edit: Edit, spec: &[&'static str], facts: &Facts) -> Verdict {
    let mut verdict = Verdict::allowed();
    if facts.platform != Some(PlatformType::Aws) {
        verdict.edit = Some(edit);
        return verdict;
    }
    let value = [spec, &["providerSpec", "value"]].concat();
    let config = match platform::read(&ProviderSpec { value: edit.get(&value).cloned() }) {
        Ok(config) => config,
        Err(error) => return Verdict::refused(vec![error]),
    };
    let AWSMachineProviderConfig {
        instance_type: chosen,
        placement,
        user_data_secret,
        credentials_secret,
        ..
    } = config;
    let mut set = |path: &[&'static str], found: Value| edit.set(&[&value, path].concat(), found);
    if chosen.is_empty() {
        let chosen = instance_type(facts.architecture);
        set(&["instanceType"], json!(chosen));
        verdict.warnings.push(format!(
            "setting the default instance type {chosen:?} for cloud provider \"AWS\", based on the \
             control plane architecture ({:?})",
            facts.architecture
        ));
    }
    if let (true, Some(region)) = (placement.region.is_empty(), &facts.region) {
        set(&["placement", "region"], json!(region));
    }
    if user_data_secret.is_none() {
        set(&["userDataSecret"], json!({"name": USER_DATA_SECRET}));
    }
    if credentials_secret.is_none() {
        set(&["credentialsSecret"], json!({"name": CREDENTIALS_SECRET}));
    }
    verdict.edit = Some(edit);
    verdict
}
