//! The rules for a MachineSet.

use fleetwright_admission::{FieldError, Verdict};
use fleetwright_api::aws::AWSMachineProviderConfig;
use fleetwright_api::config::PlatformType;
use fleetwright_api::machine::MachineSet;
use fleetwright_api::names::annotation;
use fleetwright_api::placement::GroupType;
use serde_json::json;

use super::findings::Findings;
use super::platform::{self, Owner};
use super::{Facts, autoscaler, placement};
use crate::group::preflight::SPREAD_LIMIT;
use crate::set::decide::selector;

/// Checks a MachineSet; `old` is what it was before an update.
pub fn validate(new: &MachineSet, old: Option<&MachineSet>, facts: &Facts) -> Verdict {
    let mut findings = Findings::default();
    if old.is_some_and(|old| old.spec.selector != new.spec.selector) {
        findings.error(FieldError::forbidden("spec.selector", "selector is immutable"));
    }
    let mut own = check(new, facts);
    if let Some(old) = old {
        own.hold_to(facts.updates, &check(old, facts));
    }
    findings.append(own);
    findings.into()
}

fn check(set: &MachineSet, facts: &Facts) -> Findings {
    let mut findings = Findings::default();
    let labels = &set.spec.template.metadata.labels;
    match selector(set).map(|selector| selector.matches(labels)) {
        Ok(true) => {}
        Ok(false) => findings.error(FieldError::invalid(
            "spec.template.metadata.labels",
            json!(labels),
            "`selector` does not match template `labels`",
        )),
        Err(problem) => findings.error(FieldError::invalid(
            "spec.selector",
            json!(set.spec.selector),
            format!("could not convert label selector to selector: {problem}"),
        )),
    }
    // The template's labels are not looked at, so no rule for the control plane applies.
    let owner = Owner { control_plane: false };
    let template = &set.spec.template.spec.provider_spec;
    findings.append(platform::check(template, owner, facts));
    if facts.platform == Some(PlatformType::Aws)
        && let Ok(config) = AWSMachineProviderConfig::read(template)
    {
        spread(set, &config, facts, &mut findings);
    }
    autoscaler::check(set, facts, &mut findings);
    findings
}

/// More replicas than a spread group takes are no error: the set may share the group, or shrink.
fn spread(
    set: &MachineSet,
    config: &AWSMachineProviderConfig,
    facts: &Facts,
    findings: &mut Findings,
) {
    let Ok(Some(name)) = config.group_name() else { return };
    let Some(Some(group)) = facts.groups.get(name) else { return };
    if placement::strategy(group) != Some(&GroupType::Spread) {
        return;
    }
    let annotations = set.metadata.annotations.as_ref();
    let maximum = annotations.and_then(|all| all.get(annotation::AUTOSCALER_MAX));
    let maximum = maximum.and_then(|text| text.trim().parse::<i64>().ok());
    let numbers = [
        ("spec.replicas".to_owned(), set.spec.replicas.map(i64::from)),
        (format!("metadata.annotations[{}]", annotation::AUTOSCALER_MAX), maximum),
    ];
    for (field, number) in numbers {
        if let Some(number) = number.filter(|number| *number > i64::from(SPREAD_LIMIT)) {
            findings.warn(format!(
                "{field}: {number}: placement group {name:?} has the type Spread, which takes at \
                 most {SPREAD_LIMIT} instances per zone: Machines above that cannot be created"
            ));
        }
    }
}
