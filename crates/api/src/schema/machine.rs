use super::definition::{column, wide};
use super::{Definition, Schema, shared};
use crate::machine::Machine;

pub(super) fn definition() -> Definition {
    Definition {
        annotations: &[
            ("api-approved.openshift.io", "https://github.com/openshift/api/pull/948"),
            ("api.openshift.io/merged-by-featuregates", "true"),
            ("capability.openshift.io/name", "MachineAPI"),
            ("exclude.release.openshift.io/internal-openshift-hosted", "true"),
            ("include.release.openshift.io/self-managed-high-availability", "true"),
            ("release.openshift.io/feature-set", "Default"),
        ],
        columns: vec![
            column("Phase", "string", ".status.phase", "Where the Machine is in its life"),
            column(
                "Type",
                "string",
                r".metadata.labels['machine\.openshift\.io/instance-type']",
                "Type of the instance",
            ),
            column(
                "Region",
                "string",
                r".metadata.labels['machine\.openshift\.io/region']",
                "Region of the instance",
            ),
            column(
                "Zone",
                "string",
                r".metadata.labels['machine\.openshift\.io/zone']",
                "Zone of the instance",
            ),
            column("Age", "date", ".metadata.creationTimestamp", "Age of the Machine"),
            wide("Node", "string", ".status.nodeRef.name", "Node that the instance became"),
            wide("ProviderID", "string", ".spec.providerID", "Instance, as the Node names it"),
            wide(
                "State",
                "string",
                r".metadata.annotations['machine\.openshift\.io/instance-state']",
                "State of the instance",
            ),
        ],
        ..Definition::of::<Machine>(
            "A Machine is an instance in a cloud and the Node it becomes.",
            spec("What the Machine should be."),
            status(),
        )
    }
}

/// The spec of a Machine; a MachineSet has it too, in its template.
pub(super) fn spec(text: &str) -> Schema {
    Schema::object(
        text,
        [
            ("lifecycleHooks", hooks()),
            (
                "metadata",
                shared::embedded_metadata("Labels and annotations that the Node is given."),
            ),
            (
                "providerID",
                Schema::string(
                    "The instance, as the Node names it too. Set by the controller once the \
                     instance is known; the autoscaler matches Machines and Nodes by it.",
                ),
            ),
            (
                "providerSpec",
                Schema::object(
                    "What the cloud needs to know.",
                    [(
                        "value",
                        Schema::raw("The cloud's own object, such as AWSMachineProviderConfig."),
                    )],
                ),
            ),
            ("taints", taints()),
        ],
    )
}

fn hooks() -> Schema {
    let hook = || {
        Schema::object(
            "A hold on the Machine.",
            [
                (
                    "name",
                    Schema::string(
                        "A name that is unique among the hooks of its list, in CamelCase, with a \
                         domain before a slash if need be.",
                    )
                    .length(3, 256)
                    .pattern(shared::QUALIFIED_NAME),
                ),
                (
                    "owner",
                    Schema::string("Who holds the Machine and takes the hook away.").length(3, 512),
                ),
            ],
        )
        .required(&["name", "owner"])
    };
    Schema::object(
        "Who may hold the Machine on its way out.",
        [
            ("preDrain", Schema::list_by("name", "Hold it before its Node is drained.", hook())),
            (
                "preTerminate",
                Schema::list_by(
                    "name",
                    "Hold it after the drain, before its instance is terminated.",
                    hook(),
                ),
            ),
        ],
    )
}

fn taints() -> Schema {
    let taint = Schema::object(
        "A taint.",
        [
            ("effect", Schema::string("NoSchedule, PreferNoSchedule or NoExecute.")),
            ("key", Schema::string("The key.")),
            ("timeAdded", Schema::time("When it was added.")),
            ("value", Schema::string("The value.")),
        ],
    )
    .required(&["effect", "key"]);
    Schema::atomic_list(
        "Taints that the Node is given, beside those it has. One that is taken off is put back; \
         none is ever removed.",
        taint,
    )
}

fn status() -> Schema {
    let address = Schema::object(
        "An address of the instance.",
        [
            ("address", Schema::string("The address.")),
            (
                "type",
                Schema::string("Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS."),
            ),
        ],
    )
    .required(&["address", "type"]);
    Schema::object(
        "What was observed of the Machine.",
        [
            ("addresses", Schema::atomic_list("Addresses of the instance.", address)),
            (
                "conditions",
                shared::machine_conditions("What holds for the Machine and what does not."),
            ),
            (
                "errorMessage",
                Schema::string(
                    "Why the Machine failed for good, for people. Never set for what may pass.",
                ),
            ),
            (
                "errorReason",
                Schema::string(
                    "Why the Machine failed for good, as one word. Never set for what may pass.",
                ),
            ),
            ("lastOperation", last_operation()),
            ("lastUpdated", Schema::time("When this status last changed.")),
            ("nodeRef", shared::object_reference("The Node that the instance became.")),
            ("phase", Schema::string("Provisioning, Provisioned, Running, Deleting or Failed.")),
            (
                "providerStatus",
                Schema::raw("The cloud's own object, such as AWSMachineProviderStatus."),
            ),
        ],
    )
}

fn last_operation() -> Schema {
    Schema::object(
        "The last thing a controller did to the Machine.",
        [
            ("description", Schema::string("What it was, for people.")),
            ("lastUpdated", Schema::time("When this was written.")),
            ("state", Schema::string("How it went: Processing, Failed, Successful.")),
            ("type", Schema::string("What it was: Create, Update, Delete.")),
        ],
    )
}
