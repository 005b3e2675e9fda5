//! The rules for an AWSPlacementGroup. The schema's own rules say the same where the API server
//! checks them; these are for one that has an older schema, and for what no schema can say.

use fleetwright_admission::{FieldError, Verdict};
use fleetwright_api::placement::{
    AWSPlacementGroup, GroupType, ManagedAWSPlacementGroup, ManagementState,
};

use super::Facts;
use super::findings::Findings;

const STATE: &str = "spec.managementSpec.managementState";
const MANAGED: &str = "spec.managementSpec.managed";

/// Checks a group; `old` is what it was before an update.
pub fn validate(
    new: &AWSPlacementGroup,
    old: Option<&AWSPlacementGroup>,
    facts: &Facts,
) -> Verdict {
    let mut findings = check(new);
    if let Some(old) = old {
        findings.hold_to(facts.updates, &check(old));
        changes(new, old, &mut findings);
    }
    let namespace = new.metadata.namespace.as_deref().unwrap_or_default();
    if old.is_none() && namespace != facts.machine_namespace {
        findings.warn(format!(
            "metadata.namespace: AWSPlacementGroups are looked after in namespace {:?} only: this \
             one has no effect",
            facts.machine_namespace
        ));
    }
    findings.into()
}

fn check(group: &AWSPlacementGroup) -> Findings {
    let mut findings = Findings::default();
    let management = &group.spec.management_spec;
    match (&management.management_state, &management.managed) {
        (ManagementState::Managed, None) => findings.error(FieldError::required(
            MANAGED,
            "managed is required when managementState is Managed",
        )),
        (ManagementState::Other(word), _) => findings.error(FieldError::invalid(
            STATE,
            word.as_str(),
            "managementState must be Managed or Unmanaged",
        )),
        _ => {}
    }
    if let Some(managed) = &management.managed {
        check_managed(managed, &mut findings);
    }
    findings
}

fn check_managed(managed: &ManagedAWSPlacementGroup, findings: &mut Findings) {
    if let GroupType::Other(word) = &managed.group_type {
        findings.error(FieldError::invalid(
            format!("{MANAGED}.groupType"),
            word.as_str(),
            "groupType must be Cluster, Partition or Spread",
        ));
    }
    let Some(partition) = &managed.partition else { return };
    if managed.group_type != GroupType::Partition {
        findings.error(FieldError::forbidden(
            format!("{MANAGED}.partition"),
            "partition may only be set when groupType is Partition",
        ));
    }
    if let Some(count) = partition.count.filter(|count| !(1..=7).contains(count)) {
        findings.error(FieldError::invalid(
            format!("{MANAGED}.partition.count"),
            count,
            "count must be between 1 and 7",
        ));
    }
}

/// What may not change, and what changes nothing.
fn changes(new: &AWSPlacementGroup, old: &AWSPlacementGroup, findings: &mut Findings) {
    let (new, old) = (&new.spec.management_spec, &old.spec.management_spec);
    if old.management_state == ManagementState::Unmanaged
        && new.management_state == ManagementState::Managed
    {
        findings.error(FieldError::forbidden(
            STATE,
            "an unmanaged placement group cannot become managed",
        ));
    }
    let (Some(new), Some(old)) = (&new.managed, &old.managed) else { return };
    let count = |managed: &ManagedAWSPlacementGroup| {
        managed.partition.as_ref().and_then(|partition| partition.count)
    };
    let shown = |count: Option<i32>| count.map_or("the default".to_owned(), |n| n.to_string());
    let mut warn = |field: &str, old: &str, new: &str| {
        findings.warn(format!(
            "{MANAGED}.{field}: changed from {old} to {new}, which will not be observed: a \
             placement group cannot be changed once it is made"
        ));
    };
    if new.group_type != old.group_type {
        warn("groupType", old.group_type.as_str(), new.group_type.as_str());
    }
    if count(new) != count(old) {
        warn("partition.count", &shown(count(old)), &shown(count(new)));
    }
}
