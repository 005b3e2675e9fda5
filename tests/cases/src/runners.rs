//! The registry of runners. One per table file; add a module beside this one and list it in
//! [`all`].

mod aws_actuator_lifecycle;
mod aws_block_devices;
mod aws_drain_controller;
mod aws_ec2_errors;
mod aws_instance_placement;
mod aws_machine_controller;
mod aws_machineset;
mod aws_market_and_options;
mod aws_node_addresses;
mod aws_placementgroup_controller;
mod aws_tags;
mod aws_webhook_admission;
mod aws_webhook_providerspec_validate;
mod machine_pass;
mod machinepool_autoscaler;
mod small_world;
mod spot_autoscaler;
mod spot_aws_market_options;
mod spot_azure;
mod spot_drain;
mod spot_gcp;
mod spot_interruptible_label;
mod spot_machine_phases;
mod spot_mhc_crd;
mod spot_mhc_max_unhealthy;
mod spot_mhc_needs_remediation;
mod spot_mhc_reconcile;
mod spot_termination_handler;

use crate::row::Row;

/// How one row went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The product does what the row wants.
    Passed,
    /// It does something else; the text says what was wanted and what happened.
    Failed(String),
    /// The row does not speak of this product; the text says why.
    NotApplicable(&'static str),
}

impl Outcome {
    /// Passes when both are equal.
    pub fn equal<T: PartialEq + std::fmt::Debug>(wanted: &T, found: &T) -> Self {
        if wanted == found {
            Self::Passed
        } else {
            Self::Failed(format!("wanted {wanted:?}, found {found:?}"))
        }
    }
}

/// Checks one row by calling what the product calls.
pub type Check = fn(&Row<'_>) -> Outcome;

/// What to do with one table of a file.
#[derive(Debug, Clone, Copy)]
pub enum Use {
    /// Each row is checked.
    Rows(Check),
    /// Rows of other tables refer to it.
    Context,
    /// It is not about this product; the text says why.
    NotApplicable(&'static str),
}

/// Runs one table file.
#[derive(Debug, Clone, Copy)]
pub struct Runner {
    /// The file's name, with its ending.
    pub file: &'static str,
    /// Every table of the file by its path (`cases`, `webhook.cases`), and what to do with it.
    /// Paths to a single object or to a list of plain values may be listed too.
    pub tables: &'static [(&'static str, Use)],
}

/// Every runner.
pub fn all() -> Vec<Runner> {
    vec![
        aws_actuator_lifecycle::RUNNER,
        aws_block_devices::RUNNER,
        aws_drain_controller::RUNNER,
        aws_ec2_errors::RUNNER,
        aws_instance_placement::RUNNER,
        aws_machine_controller::RUNNER,
        aws_machineset::RUNNER,
        aws_market_and_options::RUNNER,
        aws_node_addresses::RUNNER,
        aws_placementgroup_controller::RUNNER,
        aws_tags::RUNNER,
        aws_webhook_admission::RUNNER,
        aws_webhook_providerspec_validate::RUNNER,
        machinepool_autoscaler::RUNNER,
        spot_autoscaler::RUNNER,
        spot_aws_market_options::RUNNER,
        spot_azure::RUNNER,
        spot_drain::RUNNER,
        spot_gcp::RUNNER,
        spot_interruptible_label::RUNNER,
        spot_machine_phases::RUNNER,
        spot_mhc_crd::RUNNER,
        spot_mhc_max_unhealthy::RUNNER,
        spot_mhc_needs_remediation::RUNNER,
        spot_mhc_reconcile::RUNNER,
        spot_termination_handler::RUNNER,
    ]
}
