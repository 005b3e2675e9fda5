//! The rules for placement groups in a provider spec.

use fleetwright_admission::FieldError;
use fleetwright_api::aws::AWSMachineProviderConfig;
use fleetwright_api::placement::{AWSPlacementGroup, GroupType};

use super::Facts;
use super::findings::Findings;
use super::platform::Owner;
use crate::group::preflight::{self, Known, Verdict, Wish};

/// The least and the greatest number of a partition.
const PARTITIONS: std::ops::RangeInclusive<i32> = 1..=7;

/// Checks group and partition, both spellings.
pub(super) fn check(
    config: &AWSMachineProviderConfig,
    owner: Owner,
    facts: &Facts,
    findings: &mut Findings,
) {
    ranges(config, findings);
    for contradiction in [config.group_name().err(), config.partition().err()].into_iter().flatten()
    {
        let text = contradiction.to_string();
        findings.error(FieldError::forbidden(contradiction.field(), text));
    }
    let Ok(Some(wish)) = Wish::of(config, &config.placement.availability_zone) else { return };
    let field = field_of(config);
    let group = facts.groups.get(wish.group);
    let known = Known {
        group: group.and_then(Option::as_ref),
        strategies: None,
        members: &[],
        now: facts.now,
    };
    match preflight::check(&wish, &known) {
        Verdict::Refuse { message } => findings.error(FieldError::forbidden(field, message)),
        // It may come later; the Machine waits for it.
        Verdict::Missing { .. } if group.is_some() => findings.warn(format!(
            "{field}: AWSPlacementGroup {:?} not found: the Machine waits for it for two minutes, \
             then fails",
            wish.group
        )),
        Verdict::Missing { .. }
        | Verdict::Launch { .. }
        | Verdict::Wait { .. }
        | Verdict::Full { .. } => {}
    }
    if owner.control_plane {
        findings.warn(format!(
            "{field}: a control plane Machine in placement group {:?} can only be replaced by one \
             that finds room in the same group",
            wish.group
        ));
    }
}

/// The field that names the group.
fn field_of(config: &AWSMachineProviderConfig) -> &'static str {
    if config.placement.group.as_ref().is_some_and(|group| !group.name.is_empty()) {
        "providerSpec.placement.group.name"
    } else {
        "providerSpec.placementGroupName"
    }
}

/// Each spelling of the partition is in range and has a group.
fn ranges(config: &AWSMachineProviderConfig, findings: &mut Findings) {
    let unset_when_zero = |number: Option<i32>| number.filter(|number| *number != 0);
    let spellings = [
        ("providerSpec.placementGroupPartition", config.placement_group_partition),
        (
            "providerSpec.placement.partitionNumber",
            unset_when_zero(config.placement.partition_number),
        ),
        ("providerSpec.placement.number", unset_when_zero(config.placement.number)),
    ];
    let grouped = !matches!(config.group_name(), Ok(None));
    for (field, number) in spellings {
        let Some(number) = number else { continue };
        if !PARTITIONS.contains(&number) {
            let detail =
                format!("{field} must be between {} and {}", PARTITIONS.start(), PARTITIONS.end());
            findings.error(FieldError::invalid(field, number, detail));
        }
        if !grouped {
            let name = if field.contains(".placement.") {
                "providerSpec.placement.group.name"
            } else {
                "providerSpec.placementGroupName"
            };
            let detail = format!("{field} is set but {name} is empty");
            findings.error(FieldError::invalid(field, number, detail));
        }
    }
}

/// The strategy of a group, as it is or as it is wanted.
pub(super) fn strategy(group: &AWSPlacementGroup) -> Option<&GroupType> {
    let observed = group.status.as_ref().and_then(|status| status.observed_configuration.as_ref());
    let wanted = group.spec.management_spec.managed.as_ref();
    observed.or(wanted).map(|group| &group.group_type)
}
