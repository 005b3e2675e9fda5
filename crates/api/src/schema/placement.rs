//! AWSPlacementGroup. Upstream accepted this schema and took it out again before a release; the
//! rules at the end of each part are ours, for what its controller only checked afterwards.

use super::definition::column;
use super::{Definition, Schema, shared};
use crate::placement::{AWSPlacementGroup, GroupType, ManagementState};

/// What to say to who leaves out what to make.
pub(super) const MANAGED_REQUIRED: &str = "managed is required when managementState is Managed";
/// What to say to who wants a group back.
pub(super) const NEVER_MANAGED_AGAIN: &str = "an unmanaged placement group cannot become managed";
/// What to say to who gives partitions to another strategy.
pub(super) const PARTITION_ONLY: &str = "partition may only be set when groupType is Partition";

pub(super) fn definition() -> Definition {
    Definition {
        annotations: &[
            ("api-approved.openshift.io", "https://github.com/openshift/api/pull/1091"),
            ("exclude.release.openshift.io/internal-openshift-hosted", "true"),
            ("include.release.openshift.io/self-managed-high-availability", "true"),
            ("include.release.openshift.io/single-node-developer", "true"),
        ],
        columns: vec![
            column(
                "Type",
                "string",
                ".status.observedConfiguration.groupType",
                "Strategy of the group",
            ),
            column(
                "Management",
                "string",
                ".spec.managementSpec.managementState",
                "Whether the group is made and removed here",
            ),
            column("Replicas", "integer", ".status.replicas", "Instances in the group"),
            column("Age", "date", ".metadata.creationTimestamp", "Age of the object"),
        ],
        ..Definition::of::<AWSPlacementGroup>(
            "An AWSPlacementGroup is a placement group in EC2, of the same name.",
            spec(),
            status(),
        )
    }
}

fn spec() -> Schema {
    let management = Schema::object(
        "Who looks after the group, and what it should look like.",
        [
            (
                "managed",
                group(
                    "What to make when the group is managed. A group cannot be changed once made, \
                     so later edits have no effect.",
                )
                .rule("!has(self.partition) || self.groupType == 'Partition'", PARTITION_ONLY),
            ),
            (
                "managementState",
                Schema::string(
                    "Managed: the group is made and removed here. Unmanaged: it is only observed. \
                     A managed group may become unmanaged, never the other way.",
                )
                .one_of(ManagementState::WORDS)
                .rule("!(oldSelf == 'Unmanaged' && self == 'Managed')", NEVER_MANAGED_AGAIN),
            ),
        ],
    )
    .required(&["managementState"])
    .rule("self.managementState != 'Managed' || has(self.managed)", MANAGED_REQUIRED);
    Schema::object(
        "What the group should be.",
        [
            (
                "credentialsSecret",
                Schema::object(
                    "The secret with credentials for AWS, in the namespace of this object. Without \
                     it the controller uses its own.",
                    [("name", Schema::string("Name of the secret."))],
                ),
            ),
            ("managementSpec", management),
        ],
    )
    .required(&["managementSpec"])
}

/// What a group looks like, wanted or observed.
fn group(text: &str) -> Schema {
    Schema::object(
        text,
        [
            (
                "groupType",
                Schema::string(
                    "Cluster: close together. Partition: in numbered partitions that share no \
                     racks. Spread: each on its own rack, seven at most per zone; not with \
                     dedicated tenancy.",
                )
                .one_of(GroupType::WORDS),
            ),
            (
                "partition",
                Schema::object(
                    "For groupType Partition.",
                    [(
                        "count",
                        Schema::int32(
                            "How many partitions; AWS makes 2 if not said. With more than 2, \
                             Machines in the group cannot have dedicated tenancy.",
                        )
                        .at_least(1)
                        .at_most(7),
                    )],
                ),
            ),
        ],
    )
    .required(&["groupType"])
}

fn status() -> Schema {
    Schema::object(
        "What was observed of the group.",
        [
            ("conditions", shared::conditions("Ready and Deleting.")),
            ("expiresAt", Schema::time("Until when the observation may be trusted.")),
            (
                "managementState",
                Schema::string(
                    "What the controller goes by. Differs from the spec when somebody tries to \
                     manage a group that was unmanaged.",
                ),
            ),
            ("observedConfiguration", group("What the group looks like in EC2.")),
            (
                "replicas",
                Schema::int32("How many instances are in the group; absent until counted."),
            ),
        ],
    )
}
