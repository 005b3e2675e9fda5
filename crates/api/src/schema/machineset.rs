use super::definition::column;
use super::{Definition, Schema, machine, shared};
use crate::machine::{DeletePolicy, MachineSet};

pub(super) fn definition() -> Definition {
    Definition {
        annotations: &[
            ("api-approved.openshift.io", "https://github.com/openshift/api/pull/1032"),
            ("api.openshift.io/merged-by-featuregates", "true"),
            ("capability.openshift.io/name", "MachineAPI"),
            ("exclude.release.openshift.io/internal-openshift-hosted", "true"),
            ("include.release.openshift.io/self-managed-high-availability", "true"),
            ("release.openshift.io/feature-set", "Default"),
        ],
        columns: vec![
            column("Desired", "integer", ".spec.replicas", "Machines wanted"),
            column("Current", "integer", ".status.replicas", "Machines there are"),
            column("Ready", "integer", ".status.readyReplicas", "Machines whose Node is ready"),
            column(
                "Available",
                "string",
                ".status.availableReplicas",
                "Machines that have been ready for minReadySeconds",
            ),
            column("Age", "date", ".metadata.creationTimestamp", "Age of the MachineSet"),
        ],
        scale: Some([".spec.replicas", ".status.replicas", ".status.labelSelector"]),
        ..Definition::of::<MachineSet>(
            "A MachineSet keeps a number of Machines alike.",
            spec(),
            status(),
        )
    }
}

fn spec() -> Schema {
    Schema::object(
        "What the MachineSet should be.",
        [
            (
                "deletePolicy",
                Schema::string(
                    "Which Machine goes first when there are too many; Random if not said.",
                )
                .one_of(DeletePolicy::WORDS),
            ),
            (
                "minReadySeconds",
                Schema::int32("How long a Machine must be ready before it counts as available."),
            ),
            ("replicas", Schema::int32("How many Machines.").default(1)),
            (
                "selector",
                shared::label_selector(
                    "Which Machines belong to the set. Matches the labels of the template, and \
                     never changes.",
                ),
            ),
            (
                "template",
                Schema::object(
                    "What a new Machine looks like.",
                    [
                        (
                            "metadata",
                            shared::embedded_metadata("Labels and annotations of the Machine."),
                        ),
                        ("spec", machine::spec("What the Machine should be.")),
                    ],
                ),
            ),
        ],
    )
}

fn status() -> Schema {
    Schema::object(
        "What was observed of the MachineSet.",
        [
            (
                "availableReplicas",
                Schema::int32("How many Machines have been ready for minReadySeconds."),
            ),
            (
                "conditions",
                shared::machine_conditions("What holds for the MachineSet and what does not."),
            ),
            ("errorMessage", Schema::string("Why the set cannot do its work, for people.")),
            ("errorReason", Schema::string("Why the set cannot do its work, as one word.")),
            (
                "fullyLabeledReplicas",
                Schema::int32("How many Machines have all labels of the template."),
            ),
            (
                "labelSelector",
                Schema::string("The selector as text, for the scale subresource.").length(1, 4096),
            ),
            (
                "observedGeneration",
                Schema::int64("The generation of the spec that this status speaks of."),
            ),
            ("readyReplicas", Schema::int32("How many Machines have a Node that is ready.")),
            ("replicas", Schema::int32("How many Machines there are.")),
        ],
    )
}
