//! What a MachineHealthCheck asks for, read from what its user wrote.

use std::time::Duration;

use fleetwright_api::{
    machine::{MachineHealthCheck, UnhealthyCondition},
    names::annotation,
};
use fleetwright_lifecycle::{
    duration::{self, NotADuration},
    health::{Check, Unhealthy, limit::Limit},
    int_or_percent::{IntOrPercent, NotANumber},
    selector::{Selector, SelectorError},
};
use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::util::intstr::IntOrString};
use kube::ResourceExt;

/// How long a Machine may be without a Node where nothing is said.
const NODE_STARTUP_TIMEOUT: Duration = Duration::from_mins(10);
/// The limit where nothing is said.
const MAX_UNHEALTHY: &str = "100%";

/// What a check asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Which Machines.
    pub selector: Selector,
    /// When they are unhealthy.
    pub check: Check,
    /// How many may be unhealthy.
    pub limit: Limit,
    /// The same as the user wrote it.
    pub limit_text: String,
    /// What a repair is.
    pub repair: Repair,
}

/// What a repair is.
#[derive(Clone, Debug, PartialEq)]
pub enum Repair {
    /// The Machine is deleted, and whoever controls it makes another.
    Delete,
    /// The Machine is annotated, and an operator outside power-cycles the host. A Machine that is
    /// Failed is deleted all the same.
    Annotate,
    /// An object is made from this template, and its controller repairs.
    Ask(ObjectReference),
}

/// A check that makes no sense. Others go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCheck {
    /// Its selector is none.
    #[error("spec.selector: {0}")]
    Selector(#[from] SelectorError),
    /// Its limit is none.
    #[error("spec.maxUnhealthy: {0}; write a number or a share such as 40%")]
    MaxUnhealthy(#[from] NotANumber),
    /// A length of time is none.
    #[error("{field}: {error}; write a duration such as 5m")]
    Duration {
        /// Where it is written.
        field: String,
        /// What is wrong with it.
        error: NotADuration,
    },
    /// The template has no kind, version or name.
    #[error("spec.remediationTemplate.{0} is empty: name the template's kind, apiVersion and name")]
    Template(&'static str),
}

/// Reads a check.
pub fn rules(check: &MachineHealthCheck) -> Result<Rules, InvalidCheck> {
    let spec = &check.spec;
    let limit_text = match &spec.max_unhealthy {
        None => MAX_UNHEALTHY.to_owned(),
        Some(IntOrString::Int(number)) => number.to_string(),
        Some(IntOrString::String(text)) => text.clone(),
    };
    let node_startup_timeout = match &spec.node_startup_timeout {
        None => NODE_STARTUP_TIMEOUT,
        Some(text) => time("spec.nodeStartupTimeout", text)?,
    };
    let conditions = spec.unhealthy_conditions.iter().enumerate();
    let node_conditions = conditions
        .map(|(place, condition)| unhealthy(place, condition))
        .collect::<Result<_, _>>()?;
    Ok(Rules {
        selector: crate::selecting::selector(&spec.selector)?,
        check: Check { node_conditions, machine_conditions: Vec::new(), node_startup_timeout },
        limit: Limit::AtMost(IntOrPercent::parse(&limit_text)?),
        limit_text,
        repair: repair(check)?,
    })
}

fn unhealthy(place: usize, condition: &UnhealthyCondition) -> Result<Unhealthy, InvalidCheck> {
    let field = format!("spec.unhealthyConditions[{place}].timeout");
    Ok(Unhealthy {
        kind: condition.type_.clone(),
        status: condition.status.clone(),
        timeout: time(&field, &condition.timeout)?,
    })
}

fn time(field: &str, text: &str) -> Result<Duration, InvalidCheck> {
    duration::parse(text).map_err(|error| InvalidCheck::Duration { field: field.to_owned(), error })
}

fn repair(check: &MachineHealthCheck) -> Result<Repair, InvalidCheck> {
    if let Some(template) = &check.spec.remediation_template {
        let parts = [
            ("kind", &template.kind),
            ("apiVersion", &template.api_version),
            ("name", &template.name),
        ];
        for (field, value) in parts {
            if value.as_deref().unwrap_or_default().is_empty() {
                return Err(InvalidCheck::Template(field));
            }
        }
        return Ok(Repair::Ask(template.clone()));
    }
    let strategy = check.annotations().get(annotation::REMEDIATION_STRATEGY).map(String::as_str);
    Ok(match strategy {
        Some(annotation::EXTERNAL_BAREMETAL) => Repair::Annotate,
        _ => Repair::Delete,
    })
}

/// Whether a check does nothing for now.
pub fn is_paused(check: &MachineHealthCheck) -> bool {
    check.annotations().contains_key(annotation::PAUSED)
}
