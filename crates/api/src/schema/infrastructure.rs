//! Infrastructure. What Fleetwright reads is as upstream has it; the parts of other platforms are
//! kept without a look inside. A cluster that has this kind keeps its own definition.

use super::{Definition, Schema};
use crate::config::{Infrastructure, PlatformType};

pub(super) fn definition() -> Definition {
    Definition {
        scope: "Cluster",
        annotations: &[
            ("api-approved.openshift.io", "https://github.com/openshift/api/pull/470"),
            ("api.openshift.io/merged-by-featuregates", "true"),
            ("include.release.openshift.io/ibm-cloud-managed", "true"),
            ("include.release.openshift.io/self-managed-high-availability", "true"),
            ("release.openshift.io/bootstrap-required", "true"),
            ("release.openshift.io/feature-set", "Default"),
        ],
        required: &["spec"],
        ..Definition::of::<Infrastructure>(
            "Infrastructure says what the cluster runs on. There is one, named cluster.",
            spec(),
            status(),
        )
    }
}

/// The platform, or nothing.
fn platform(text: &str) -> Schema {
    let words: Vec<&str> = [""].iter().chain(PlatformType::WORDS).copied().collect();
    Schema::string(text).one_of(&words)
}

fn endpoints() -> Schema {
    Schema::atomic_list(
        "Endpoints of AWS that differ from the public ones.",
        Schema::object(
            "An endpoint.",
            [
                ("name", Schema::string("The service.").pattern("^[a-z0-9-]+$")),
                ("url", Schema::string("Its address.").pattern("^https://")),
            ],
        ),
    )
}

fn spec() -> Schema {
    Schema::object(
        "What may be chosen after installation.",
        [
            (
                "cloudConfig",
                Schema::object(
                    "A ConfigMap of openshift-config for the cloud's integration.",
                    [
                        ("key", Schema::string("The key in the ConfigMap.")),
                        ("name", Schema::string("The ConfigMap.")),
                    ],
                ),
            ),
            (
                "platformSpec",
                Schema::object(
                    "Choices per platform.",
                    [
                        ("aws", Schema::object("On AWS.", [("serviceEndpoints", endpoints())])),
                        ("type", platform("The platform.")),
                    ],
                )
                .set("x-kubernetes-preserve-unknown-fields", true.into()),
            ),
        ],
    )
}

/// Characters that tags of AWS may have.
const TAG_RULE: &str = "self.matches('^[0-9A-Za-z_.:/=+-@ ]+$')";

fn tag() -> Schema {
    Schema::object(
        "A tag.",
        [
            (
                "key",
                Schema::string("Its key.").length(1, 128).rule(
                    TAG_RULE,
                    "invalid AWS resource tag key. The string can contain only the set of \
                     alphanumeric characters, space (' '), '_', '.', '/', '=', '+', '-', ':', '@'",
                ),
            ),
            (
                "value",
                Schema::string("Its value.").length(1, 256).rule(
                    TAG_RULE,
                    "invalid AWS resource tag value. The string can contain only the set of \
                     alphanumeric characters, space (' '), '_', '.', '/', '=', '+', '-', ':', '@'",
                ),
            ),
        ],
    )
    .required(&["key", "value"])
}

fn status() -> Schema {
    let aws = Schema::object(
        "On AWS.",
        [
            ("region", Schema::string("The region of the cluster.")),
            (
                "resourceTags",
                Schema::atomic_list("Tags for everything made for the cluster.", tag())
                    .set("maxItems", 25.into()),
            ),
            ("serviceEndpoints", endpoints()),
        ],
    )
    .set("x-kubernetes-preserve-unknown-fields", true.into());
    let platform_status = Schema::object(
        "The platform and what it needs.",
        [("aws", aws), ("type", platform("The platform."))],
    )
    .set("x-kubernetes-preserve-unknown-fields", true.into());
    Schema::object(
        "What the installer found and made.",
        [
            ("apiServerInternalURI", Schema::string("Where the API is for those inside.")),
            ("apiServerURL", Schema::string("Where the API is.")),
            (
                "controlPlaneTopology",
                Schema::string("How the control plane is spread.")
                    .default("HighlyAvailable")
                    .one_of(&[
                        "HighlyAvailable",
                        "HighlyAvailableArbiter",
                        "SingleReplica",
                        "External",
                    ]),
            ),
            (
                "cpuPartitioning",
                Schema::string("Whether nodes are partitioned for workloads.")
                    .default("None")
                    .one_of(&["None", "AllNodes"]),
            ),
            ("etcdDiscoveryDomain", Schema::string("A domain of old; unused.")),
            (
                "infrastructureName",
                Schema::string(
                    "The cluster's name in the cloud: in tags and in the names of what it owns.",
                ),
            ),
            (
                "infrastructureTopology",
                Schema::string("How other components are spread.")
                    .default("HighlyAvailable")
                    .one_of(&["HighlyAvailable", "SingleReplica"]),
            ),
            ("platform", platform("The platform, as written before there was a platformStatus.")),
            ("platformStatus", platform_status),
        ],
    )
}
