//! The table.

use fleetwright_machines::{
    admit::name::CONFIGURATION,
    group,
    health::{self, termination},
    machine,
    set::{self, capacity},
};

use super::{Identity, Place, Right};
use crate::{fleet::SHARED, webhooks};

/// The process itself.
pub const PROCESS: &str = "fleetwright";

const MACHINE_API: &str = "machine.openshift.io";
const CONFIG_API: &str = "config.openshift.io";
const REGISTRATION: &str = "admissionregistration.k8s.io";
/// The Secret and the Service of the webhooks.
const WEBHOOKS: &str = "fleetwright-webhooks";
/// The lease.
const LEASE: &str = "fleetwright";

const READ: &[&str] = &["list", "watch"];

const fn right(
    place: Place,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
) -> Right {
    Right { place, group, resource, verbs, names: &[], unseen: None }
}

impl Right {
    const fn only(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    const fn unseen(self, why: &'static str) -> Self {
        Self { unseen: Some(why), ..self }
    }
}

const OWNERS: &str = "for API servers with OwnerReferencesPermissionEnforcement";

/// Everybody.
pub const IDENTITIES: &[Identity] = &[
    Identity {
        name: PROCESS,
        rights: &[
            right(Place::System, "coordination.k8s.io", "leases", &["create"]),
            right(Place::System, "coordination.k8s.io", "leases", &["get", "update"])
                .only(&[LEASE]),
            right(Place::System, "", "secrets", &["create"]),
            right(Place::System, "", "secrets", &["get", "list", "watch"]).only(&[WEBHOOKS]),
            right(Place::System, "", "secrets", &["update"])
                .only(&[WEBHOOKS])
                .unseen("to renew the certificate"),
            right(Place::System, "", "services", &["get"])
                .only(&[WEBHOOKS])
                .unseen("to find out whether the API server has a way to us"),
            right(Place::System, "", "serviceaccounts", &["impersonate"])
                .only(CONTROLLERS)
                .unseen("to act as its controllers; clients in one process need no headers"),
            right(Place::Cluster, REGISTRATION, "mutatingwebhookconfigurations", &["create"]),
            right(Place::Cluster, REGISTRATION, "mutatingwebhookconfigurations", WRITTEN)
                .only(&[CONFIGURATION]),
            right(Place::Cluster, REGISTRATION, "mutatingwebhookconfigurations", &["get"])
                .only(&[CONFIGURATION])
                .unseen("to check those of somebody else"),
            right(Place::Cluster, REGISTRATION, "validatingwebhookconfigurations", &["create"]),
            right(Place::Cluster, REGISTRATION, "validatingwebhookconfigurations", WRITTEN)
                .only(&[CONFIGURATION]),
            right(Place::Cluster, REGISTRATION, "validatingwebhookconfigurations", &["get"])
                .only(&[CONFIGURATION])
                .unseen("to check those of somebody else"),
            right(Place::Cluster, CONFIG_API, "infrastructures", &["create", "get"])
                .unseen("to find out at the start whether the cluster is described, and do it"),
            right(Place::Cluster, CONFIG_API, "infrastructures/status", &["patch"])
                .unseen("to describe a cluster that nobody described"),
            right(Place::Cluster, "apiextensions.k8s.io", "customresourcedefinitions", &["get"])
                .unseen("to find out at the start whether the kinds are there"),
        ],
    },
    Identity {
        name: SHARED,
        rights: &[
            right(Place::Machines, MACHINE_API, "machines", READ),
            right(Place::Machines, MACHINE_API, "machinesets", READ),
            right(Place::Machines, MACHINE_API, "awsplacementgroups", READ),
            right(Place::Machines, MACHINE_API, "machinehealthchecks", READ),
            right(Place::Machines, "", "secrets", READ),
            right(Place::Cluster, "", "nodes", READ),
            right(Place::Cluster, CONFIG_API, "infrastructures", READ),
            right(Place::Machines, "", "events", &["create"]),
            right(Place::Machines, "", "events", &["patch"]).unseen("when events repeat"),
            right(Place::Cluster, "", "events", &["create", "patch"])
                .unseen("about the cluster itself, whose events are in another namespace"),
        ],
    },
    Identity {
        name: machine::CONTROLLER,
        rights: &[
            right(Place::Machines, MACHINE_API, "machines", &["patch"]),
            right(Place::Machines, MACHINE_API, "machines/status", &["patch"]),
            right(Place::Cluster, "", "nodes", &["delete", "get", "patch"]),
            right(Place::Cluster, "", "nodes", &["list"])
                .unseen("to drain one Node of the control plane at a time"),
            right(Place::Cluster, MACHINE_API, "machines", &["list"])
                .unseen("to make sure that an instance is nobody's"),
            right(Place::Cluster, "", "pods", &["list"]),
            right(Place::Cluster, "", "pods", &["delete"]),
            right(Place::Cluster, "", "pods/eviction", &["create"]),
            right(Place::Cluster, "apps", "daemonsets", &["get"]),
        ],
    },
    Identity {
        name: set::CONTROLLER,
        rights: &[
            right(Place::Machines, MACHINE_API, "machines", &["create", "delete", "patch"]),
            right(Place::Machines, MACHINE_API, "machinesets", &["get"]),
            right(Place::Machines, MACHINE_API, "machinesets/status", &["patch"]),
            right(Place::Machines, MACHINE_API, "machinesets/finalizers", &["update"])
                .unseen(OWNERS),
        ],
    },
    Identity {
        name: capacity::CONTROLLER,
        rights: &[right(Place::Machines, MACHINE_API, "machinesets", &["patch"])],
    },
    Identity {
        name: group::CONTROLLER,
        rights: &[
            right(Place::Machines, MACHINE_API, "awsplacementgroups", &["patch"]),
            right(Place::Machines, MACHINE_API, "awsplacementgroups", &["get"])
                .unseen("after a crash between an intent and its call"),
            right(Place::Machines, MACHINE_API, "awsplacementgroups/status", &["patch"]),
        ],
    },
    Identity {
        name: health::CONTROLLER,
        rights: &[
            right(Place::Machines, MACHINE_API, "machines", &["delete"]),
            right(Place::Machines, MACHINE_API, "machines", &["patch"])
                .unseen("to have hosts of metal repaired by others"),
            right(Place::Machines, MACHINE_API, "machinehealthchecks", &["patch"])
                .unseen("to remember repairs that did not help"),
            right(Place::Machines, MACHINE_API, "machinehealthchecks/status", &["patch"]),
            right(Place::Cluster, "", "nodes", &["get"]).unseen("to make sure that a Node is gone"),
        ],
    },
    Identity {
        name: termination::CONTROLLER,
        rights: &[
            right(Place::Machines, MACHINE_API, "machinehealthchecks", &["create"]),
            right(Place::Machines, MACHINE_API, "machinehealthchecks", &["get", "patch"])
                .only(&[termination::NAME]),
        ],
    },
    Identity {
        name: webhooks::IDENTITY,
        rights: &[
            right(Place::Cluster, CONFIG_API, "infrastructures", READ),
            right(Place::Machines, "", "secrets", &["get"]),
            right(Place::Machines, MACHINE_API, "awsplacementgroups", &["get"]),
        ],
    },
];

const WRITTEN: &[&str] = &["list", "patch", "watch"];

/// The accounts of everybody but the process itself.
const CONTROLLERS: &[&str] = &[
    "fleetwright-machine",
    "fleetwright-machinehealthcheck",
    "fleetwright-machineset",
    "fleetwright-machineset-capacity",
    "fleetwright-placementgroup",
    "fleetwright-shared",
    "fleetwright-terminationcheck",
    "fleetwright-webhooks",
];
