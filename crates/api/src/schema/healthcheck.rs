use super::definition::column;
use super::{Definition, Schema, shared};
use crate::machine::MachineHealthCheck;

pub(super) fn definition() -> Definition {
    Definition {
        short_names: &["mhc", "mhcs"],
        annotations: &[
            ("api-approved.openshift.io", "https://github.com/openshift/api/pull/1032"),
            ("api.openshift.io/merged-by-featuregates", "true"),
            ("capability.openshift.io/name", "MachineAPI"),
            ("exclude.release.openshift.io/internal-openshift-hosted", "true"),
            ("include.release.openshift.io/self-managed-high-availability", "true"),
        ],
        columns: vec![
            column(
                "MaxUnhealthy",
                "string",
                ".spec.maxUnhealthy",
                "How many may be unhealthy before nothing is repaired",
            ),
            column("ExpectedMachines", "integer", ".status.expectedMachines", "Machines watched"),
            column("CurrentHealthy", "integer", ".status.currentHealthy", "Machines healthy"),
        ],
        ..Definition::of::<MachineHealthCheck>(
            "A MachineHealthCheck says when Machines are unhealthy and how many may be repaired at \
             once.",
            spec(),
            status(),
        )
    }
}

fn spec() -> Schema {
    let condition = Schema::object(
        "A condition of a Node and how long it may last.",
        [
            ("status", Schema::string("The status that is unhealthy.").set("minLength", 1.into())),
            (
                "timeout",
                Schema::string("For how long, such as 300s or 1h30m.")
                    .pattern(r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"),
            ),
            ("type", Schema::string("The condition's type.").set("minLength", 1.into())),
        ],
    );
    Schema::object(
        "Which Machines to watch, and how.",
        [
            (
                "maxUnhealthy",
                Schema::int_or_string(
                    "Nothing is repaired while more than this many Machines, or this share of \
                     them, are unhealthy. 0 repairs nothing.",
                )
                .default("100%")
                .pattern("^((100|[0-9]{1,2})%|[0-9]+)$"),
            ),
            (
                "nodeStartupTimeout",
                Schema::string(
                    "How old a Machine without a Node may grow before it is unhealthy, such as \
                     10m; 0 is for ever.",
                )
                .default("10m")
                .pattern(r"^0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"),
            ),
            (
                "remediationTemplate",
                shared::object_reference(
                    "A template to make a request for repair from, instead of deleting the \
                     Machine.",
                ),
            ),
            (
                "selector",
                shared::label_selector(
                    "Which Machines; an empty selector is all of the namespace.",
                ),
            ),
            (
                "unhealthyConditions",
                Schema::list("A Node with any of these is unhealthy.", condition)
                    .set("minItems", 1.into()),
            ),
        ],
    )
}

fn status() -> Schema {
    Schema::object(
        "What was observed.",
        [
            (
                "conditions",
                shared::machine_conditions("What holds for the check and what does not."),
            ),
            ("currentHealthy", Schema::integer("How many Machines are healthy.").at_least(0)),
            ("expectedMachines", Schema::integer("How many Machines are watched.").at_least(0)),
            (
                "remediationsAllowed",
                Schema::int32("How many more may be repaired now.").at_least(0),
            ),
        ],
    )
}
