//! Every name that users and their tools match on: labels, annotations, finalizers, conditions,
//! reasons, events, tags. Values here never change.

/// The namespace of Machines where nothing else is said.
pub const MACHINE_NAMESPACE: &str = "openshift-machine-api";
/// The name of the one Infrastructure object.
pub const INFRASTRUCTURE: &str = "cluster";
/// The prefix of our own labels, annotations and finalizers.
pub const PREFIX: &str = "fleetwright.dev/";

/// Finalizers: while they are there, something outside still has to go.
pub mod finalizer {
    /// On a Machine: its instance.
    pub const MACHINE: &str = "machine.machine.openshift.io";
    /// On an AWSPlacementGroup: the group in EC2.
    pub const PLACEMENT_GROUP: &str = "awsplacementgroup.machine.openshift.io";
}

/// Labels.
pub mod label {
    /// On Machine and MachineSet: the cluster they belong to. Required.
    pub const CLUSTER: &str = "machine.openshift.io/cluster-api-cluster";
    /// The same before there was a Machine API group.
    pub const LEGACY_CLUSTER: &str = "sigs.k8s.io/cluster-api-cluster";
    /// On a Machine: the MachineSet it belongs to.
    pub const MACHINE_SET: &str = "machine.openshift.io/cluster-api-machineset";
    /// On a Machine: what it is for, such as [`MASTER`].
    pub const MACHINE_ROLE: &str = "machine.openshift.io/cluster-api-machine-role";
    /// On a Machine: the same, as older releases wrote it.
    pub const MACHINE_TYPE: &str = "machine.openshift.io/cluster-api-machine-type";
    /// The role and the type of a Machine of the control plane.
    pub const MASTER: &str = "master";
    /// On a Machine: its region.
    pub const REGION: &str = "machine.openshift.io/region";
    /// On a Machine: its zone.
    pub const ZONE: &str = "machine.openshift.io/zone";
    /// On a Machine: the type of its instance.
    pub const INSTANCE_TYPE: &str = "machine.openshift.io/instance-type";
    /// On a Machine and its Node, without a value: the cloud may take the instance back.
    pub const INTERRUPTIBLE: &str = "machine.openshift.io/interruptible-instance";
    /// On a Node of the control plane.
    pub const NODE_ROLE_MASTER: &str = "node-role.kubernetes.io/master";
    /// On a Node of the control plane.
    pub const NODE_ROLE_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
    /// On a Machine and its Node: the placement group the instance is in.
    pub const PLACEMENT_GROUP: &str = "fleetwright.dev/placement-group";
    /// On a Machine and its Node: group and partition the instance is in, as `shards-3`. A key for
    /// topology spread.
    pub const PARTITION: &str = "fleetwright.dev/placement-partition";
}

/// Annotations.
pub mod annotation {
    /// On a Machine: the state of its instance, as the cloud names it.
    pub const INSTANCE_STATE: &str = "machine.openshift.io/instance-state";
    /// The value of [`INSTANCE_STATE`] once nothing is known any more.
    pub const INSTANCE_STATE_UNKNOWN: &str = "Unknown";
    /// On a Machine, whatever the value: its Node is not drained.
    pub const EXCLUDE_NODE_DRAINING: &str = "machine.openshift.io/exclude-node-draining";
    /// On a Machine, with any value: goes first when its MachineSet shrinks.
    pub const DELETE_MACHINE: &str = "machine.openshift.io/delete-machine";
    /// The same, as older releases wrote it.
    pub const OLD_DELETE_MACHINE: &str = "machine.openshift.io/cluster-api-delete-machine";
    /// On a Node: its Machine, `namespace/name`.
    pub const MACHINE: &str = "machine.openshift.io/machine";
    /// On a MachineSet: processors of its instances, for the autoscaler at zero.
    pub const VCPU: &str = "machine.openshift.io/vCPU";
    /// On a MachineSet: memory of its instances.
    pub const MEMORY_MB: &str = "machine.openshift.io/memoryMb";
    /// On a MachineSet: GPUs of its instances.
    pub const GPU: &str = "machine.openshift.io/GPU";
    /// On a MachineSet: pods its instances hold.
    pub const MAX_PODS: &str = "machine.openshift.io/maxPods";
    /// On a MachineSet: processors of its Nodes, as users may correct it.
    pub const CAPACITY_CPU: &str = "capacity.cluster-autoscaler.kubernetes.io/cpu";
    /// On a MachineSet: memory of its Nodes, as users may correct it.
    pub const CAPACITY_MEMORY: &str = "capacity.cluster-autoscaler.kubernetes.io/memory";
    /// On a MachineSet: GPUs of its Nodes.
    pub const CAPACITY_GPU_COUNT: &str = "capacity.cluster-autoscaler.kubernetes.io/gpu-count";
    /// On a MachineSet: the resource that the GPUs of its Nodes are.
    pub const CAPACITY_GPU_TYPE: &str = "capacity.cluster-autoscaler.kubernetes.io/gpu-type";
    /// On a MachineSet: which of the values for the autoscaler are ours.
    pub const CAPACITY: &str = "fleetwright.dev/capacity";
    /// On a MachineSet: disk for pods of its Nodes.
    pub const CAPACITY_DISK: &str = "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk";
    /// On a MachineSet: pods its Nodes hold.
    pub const CAPACITY_MAX_PODS: &str = "capacity.cluster-autoscaler.kubernetes.io/maxPods";
    /// On a MachineSet: labels its Nodes will have.
    pub const CAPACITY_LABELS: &str = "capacity.cluster-autoscaler.kubernetes.io/labels";
    /// On a MachineSet: taints its Nodes will have.
    pub const CAPACITY_TAINTS: &str = "capacity.cluster-autoscaler.kubernetes.io/taints";
    /// On a MachineSet: the fewest Machines the autoscaler leaves.
    pub const AUTOSCALER_MIN: &str =
        "machine.openshift.io/cluster-api-autoscaler-node-group-min-size";
    /// On a MachineSet: the most Machines the autoscaler makes.
    pub const AUTOSCALER_MAX: &str =
        "machine.openshift.io/cluster-api-autoscaler-node-group-max-size";
    /// On a MachineHealthCheck: it does nothing.
    pub const PAUSED: &str = "cluster.x-k8s.io/paused";
    /// On a MachineHealthCheck: who repairs.
    pub const REMEDIATION_STRATEGY: &str = "machine.openshift.io/remediation-strategy";
    /// The value of [`REMEDIATION_STRATEGY`] that leaves the repair to [`EXTERNAL_REMEDIATION`].
    pub const EXTERNAL_BAREMETAL: &str = "external-baremetal";
    /// On a Machine, with any value: no health check looks at it.
    pub const SKIP_REMEDIATION: &str = "cluster.x-k8s.io/skip-remediation";
    /// On a Machine, with any value: it is repaired now.
    pub const REMEDIATE_MACHINE: &str = "cluster.x-k8s.io/remediate-machine";
    /// On a MachineHealthCheck that we keep: with the value `Unmanaged` we leave it as it is.
    pub const MANAGEMENT_STATE: &str = "fleetwright.dev/management-state";
    /// The value of [`MANAGEMENT_STATE`] that keeps our hands off.
    pub const UNMANAGED: &str = "Unmanaged";
    /// On a Machine: someone outside repairs it.
    pub const EXTERNAL_REMEDIATION: &str = "host.metal3.io/external-remediation";
    /// On a request for repair: the kind of its template.
    pub const CLONED_FROM_GROUP_KIND: &str = "machine.openshift.io/cloned-from-groupkind";
    /// On a request for repair: the name of its template.
    pub const CLONED_FROM_NAME: &str = "machine.openshift.io/cloned-from-name";
    /// On a Machine: how long its drain may take, as text such as `10m`; what is left then stays.
    pub const DRAIN_TIMEOUT: &str = "fleetwright.dev/drain-timeout";
    /// On a MachineSet: whether its Machines are launched together, and how.
    pub const GANG: &str = "fleetwright.dev/gang";
    /// On any object: what is about to be done outside, written before it is done. Versioned JSON.
    pub const INTENT: &str = "fleetwright.dev/intent";
    /// On a Machine: the name of the one whose place it takes.
    pub const REPLACES: &str = "fleetwright.dev/replaces";
    /// On a Machine: since when the one goes whose place it takes, RFC 3339 in UTC: when the cloud
    /// told of it, else when it was deleted.
    pub const REPLACES_SINCE: &str = "fleetwright.dev/replaces-since";
    /// On a MachineSet or Machine: how long to wait for capacity before the Machine fails, as text
    /// such as `15m`; `0` fails at once.
    pub const CAPACITY_DEADLINE: &str = "fleetwright.dev/capacity-deadline";
    /// On a Node with the condition Terminating: when its instance goes, RFC 3339 in UTC.
    pub const TERMINATION_DEADLINE: &str = "machine.openshift.io/termination-deadline";
    /// On a Node with the condition Terminating: who said so, such as `aws/spot-instance-action`.
    pub const TERMINATION_SOURCE: &str = "machine.openshift.io/termination-source";
    /// On a Node: the termination handler made it unschedulable, and may undo it.
    pub const CORDONED_BY_HANDLER: &str = "fleetwright.dev/cordoned-by-termination-handler";
}

/// Condition types of Machine, MachineSet and MachineHealthCheck.
pub mod condition {
    /// Machine: the instance is there.
    pub const INSTANCE_EXISTS: &str = "InstanceExists";
    /// Machine: nobody holds it before the drain.
    pub const DRAINABLE: &str = "Drainable";
    /// Machine: nobody holds it before termination.
    pub const TERMINABLE: &str = "Terminable";
    /// Machine: its Node is drained.
    pub const DRAINED: &str = "Drained";
    /// Machine and MachineSet: another API owns it.
    pub const PAUSED: &str = "Paused";
    /// Machine and MachineSet: both copies agree.
    pub const SYNCHRONIZED: &str = "Synchronized";
    /// Machine: the launch, on every cloud.
    pub const MACHINE_CREATED: &str = "MachineCreated";
    /// Provider status on AWS: the launch.
    pub const MACHINE_CREATION: &str = "MachineCreation";
    /// MachineHealthCheck: few enough are unhealthy.
    pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
    /// MachineHealthCheck: the template for repairs is there.
    pub const EXTERNAL_REMEDIATION_TEMPLATE: &str = "ExternalRemediationTemplateAvailable";
    /// MachineHealthCheck: the request for repair could be made.
    pub const EXTERNAL_REMEDIATION_REQUEST: &str = "ExternalRemediationRequestAvailable";
    /// MachineHealthCheck: repairs wait.
    pub const REMEDIATION_BACKOFF: &str = "RemediationBackoff";
    /// Node: the cloud takes the instance back.
    pub const TERMINATING: &str = "Terminating";
    /// Node: the cloud advises to leave the instance before it is taken back.
    pub const REBALANCE_RECOMMENDED: &str = "RebalanceRecommended";
}

/// Reasons of those conditions.
pub mod reason {
    /// InstanceExists Unknown: the provider did not answer.
    pub const ERROR_CHECKING_PROVIDER: &str = "ErrorCheckingProvider";
    /// InstanceExists False: it was there.
    pub const INSTANCE_MISSING: &str = "InstanceMissing";
    /// InstanceExists False: it was never there.
    pub const INSTANCE_NOT_CREATED: &str = "InstanceNotCreated";
    /// Drainable and Terminable False.
    pub const HOOK_PRESENT: &str = "HookPresent";
    /// Drained False.
    pub const DRAIN_ERROR: &str = "DrainError";
    /// Paused True.
    pub const NOT_MACHINE_API: &str = "AuthoritativeAPINotMachineAPI";
    /// Paused False.
    pub const MACHINE_API: &str = "AuthoritativeAPIMachineAPI";
    /// MachineCreated and MachineCreation True.
    pub const MACHINE_CREATION_SUCCEEDED: &str = "MachineCreationSucceeded";
    /// MachineCreated and MachineCreation False.
    pub const MACHINE_CREATION_FAILED: &str = "MachineCreationFailed";
    /// MachineCreated False: the cloud has none left.
    pub const INSUFFICIENT_CAPACITY: &str = "InsufficientCapacity";
    /// MachineCreated False: the account may have no more.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// MachineCreated False: we ask too often.
    pub const THROTTLED: &str = "Throttled";
    /// MachineCreated False: the cloud refuses us.
    pub const CREDENTIALS_REJECTED: &str = "CredentialsRejected";
    /// MachineCreated False: the placement group is not ready.
    pub const PLACEMENT_GROUP_NOT_READY: &str = "PlacementGroupNotReady";
    /// MachineCreated False: the spread placement group is full in the zone.
    pub const SPREAD_LIMIT_REACHED: &str = "SpreadLimitReached";
    /// RemediationAllowed False.
    pub const TOO_MANY_UNHEALTHY: &str = "TooManyUnhealthy";
    /// RemediationAllowed False: a field of the MachineHealthCheck makes no sense.
    pub const INVALID_HEALTH_CHECK: &str = "InvalidHealthCheck";
    /// RemediationBackoff True: replacements fail as well.
    pub const REPLACEMENTS_FAIL: &str = "ReplacementsFail";
    /// RemediationBackoff False: nothing waits any more.
    pub const NOTHING_WAITS: &str = "NothingWaits";
    /// ExternalRemediationTemplateAvailable False.
    pub const EXTERNAL_TEMPLATE_NOT_FOUND: &str = "ExternalRemediationTemplateNotFound";
    /// ExternalRemediationRequestAvailable False.
    pub const EXTERNAL_REQUEST_FAILED: &str = "ExternalRemediationRequestCreationFailed";
    /// Terminating True.
    pub const TERMINATION_REQUESTED: &str = "TerminationRequested";
    /// Terminating False: the cloud has thought better of it.
    pub const TERMINATION_CANCELLED: &str = "TerminationCancelled";
    /// RebalanceRecommended True.
    pub const INTERRUPTION_LIKELY: &str = "InterruptionLikely";
}

/// Messages of those conditions that users match on.
pub mod message {
    /// With [`reason::INSTANCE_MISSING`](super::reason::INSTANCE_MISSING).
    pub const INSTANCE_MISSING: &str = "Instance not found on provider";
    /// With [`reason::INSTANCE_NOT_CREATED`](super::reason::INSTANCE_NOT_CREATED).
    pub const INSTANCE_NOT_CREATED: &str = "Instance has not been created";
    /// With [`reason::MACHINE_CREATION_SUCCEEDED`](super::reason::MACHINE_CREATION_SUCCEEDED).
    pub const MACHINE_CREATED: &str = "Machine successfully created";
    /// Of Drained True.
    pub const DRAIN_FINISHED: &str = "Drain finished successfully";
    /// Of Drained True where nothing was drained.
    pub const DRAIN_SKIPPED: &str = "Node drain skipped";
    /// errorMessage of a Machine whose instance went away.
    pub const CANNOT_FIND_INSTANCE: &str = "can't find created instance";
    /// With [`reason::TERMINATION_REQUESTED`](super::reason::TERMINATION_REQUESTED).
    pub const TERMINATING: &str = "The cloud provider has marked this instance for termination";
    /// With [`reason::TERMINATION_CANCELLED`](super::reason::TERMINATION_CANCELLED).
    pub const TERMINATION_CANCELLED: &str =
        "The cloud provider no longer plans to terminate this instance";
    /// With [`reason::INTERRUPTION_LIKELY`](super::reason::INTERRUPTION_LIKELY).
    pub const REBALANCE_RECOMMENDED: &str =
        "The cloud provider recommends to move work away from this instance";
}

/// Conditions of an AWSPlacementGroup, and their reasons.
pub mod group {
    /// The group is there, available and as wanted.
    pub const READY: &str = "Ready";
    /// The group goes away.
    pub const DELETING: &str = "Deleting";
    /// Ready True: we made it.
    pub const CREATION_SUCCEEDED: &str = "CreationSucceeded";
    /// Ready False: we could not make it.
    pub const CREATION_FAILED: &str = "CreationFailed";
    /// Ready False: it is not what is wanted, or not ours.
    pub const CONFIGURATION_MISMATCH: &str = "ConfigurationMismatch";
    /// Ready True: it is as wanted.
    pub const CONFIGURATION_IN_SYNC: &str = "ConfigurationInSync";
    /// Ready False: an unmanaged group that is not there.
    pub const NOT_FOUND: &str = "NotFound";
    /// Deleting True: something keeps it; the message says what.
    pub const DELETION_FAILED: &str = "DeletionFailed";
}

/// Values of `status.errorReason`.
pub mod error_reason {
    /// The spec cannot work.
    pub const INVALID_CONFIGURATION: &str = "InvalidConfiguration";
    /// The change cannot be made.
    pub const UNSUPPORTED_CHANGE: &str = "UnsupportedChange";
    /// The cloud has not enough.
    pub const INSUFFICIENT_RESOURCES: &str = "InsufficientResources";
    /// The instance could not be made.
    pub const CREATE: &str = "CreateError";
    /// The instance could not be changed.
    pub const UPDATE: &str = "UpdateError";
    /// The instance could not be removed.
    pub const DELETE: &str = "DeleteError";
    /// The instance never became a Node.
    pub const JOIN_CLUSTER_TIMEOUT: &str = "JoinClusterTimeoutError";
}

/// Reasons of events.
pub mod event {
    /// An instance was launched.
    pub const CREATE: &str = "Create";
    /// An instance was brought up to date.
    pub const UPDATE: &str = "Update";
    /// An instance was terminated.
    pub const DELETE: &str = "Delete";
    /// A launch failed.
    pub const FAILED_CREATE: &str = "FailedCreate";
    /// An update failed.
    pub const FAILED_UPDATE: &str = "FailedUpdate";
    /// A termination failed.
    pub const FAILED_DELETE: &str = "FailedDelete";
    /// The Machine makes no sense.
    pub const FAILED_VALIDATE: &str = "FailedValidate";
    /// A hook holds the drain.
    pub const DRAIN_BLOCKED: &str = "DrainBlocked";
    /// The drain begins or goes on.
    pub const DRAIN_PROCEEDS: &str = "DrainProceeds";
    /// The drain is tried again later.
    pub const DRAIN_REQUEUED: &str = "DrainRequeued";
    /// The Node is empty.
    pub const DRAIN_SUCCEEDED: &str = "DrainSucceeded";
    /// Nothing to drain.
    pub const DRAIN_SKIPPED: &str = "DrainSkipped";
    /// The cloud takes the instance back.
    pub const TERMINATION_NOTICE: &str = "TerminationNotice";
    /// The instance is gone.
    pub const INSTANCE_GONE: &str = "InstanceGone";
    /// The Node is drained, or gone.
    pub const DELETED: &str = "Deleted";
    /// MachineHealthCheck: too many are unhealthy.
    pub const REMEDIATION_RESTRICTED: &str = "RemediationRestricted";
    /// MachineHealthCheck: repairs wait for one another.
    pub const REMEDIATION_BACKOFF: &str = "RemediationBackoff";
    /// Machine: it may turn unhealthy.
    pub const DETECTED_UNHEALTHY: &str = "DetectedUnhealthy";
    /// Machine: nobody would replace it, so it is not deleted.
    pub const SKIPPED_NO_CONTROLLER: &str = "SkippedNoController";
    /// Machine: a health check deleted it.
    pub const MACHINE_DELETED: &str = "MachineDeleted";
    /// Machine: a health check could not delete it.
    pub const MACHINE_DELETION_FAILED: &str = "MachineDeletionFailed";
    /// Machine: somebody else was asked to repair it.
    pub const EXTERNAL_ANNOTATION_ADDED: &str = "ExternalAnnotationAdded";
    /// Machine: nobody else could be asked.
    pub const EXTERNAL_ANNOTATION_FAILED: &str = "ExternalAnnotationFailed";
    /// Of the Infrastructure: an instance of the cluster is nobody's.
    pub const INSTANCE_WITHOUT_MACHINE: &str = "InstanceWithoutMachine";
    /// A group or a MachineSet could not be brought to what is wanted.
    pub const RECONCILE_ERROR: &str = "ReconcileError";
}

/// Keys in the secrets that Machines refer to.
pub mod secret {
    /// What an instance is given to boot with.
    pub const USER_DATA: &str = "userData";
    /// The identifier of an access key.
    pub const AWS_ACCESS_KEY_ID: &str = "aws_access_key_id";
    /// The access key.
    pub const AWS_SECRET_ACCESS_KEY: &str = "aws_secret_access_key";
    /// A file as the AWS tools read it.
    pub const AWS_CREDENTIALS: &str = "credentials";
}

/// Tags on what is made in EC2.
pub mod tag {
    /// The tag that names a thing.
    pub const NAME: &str = "Name";
    /// The value that says the cluster owns it.
    pub const OWNED: &str = "owned";
    /// The UID of the Machine an instance belongs to.
    pub const MACHINE_UID: &str = "fleetwright-machine-uid";
    /// The launch an instance was made by, together with others.
    pub const GANG: &str = "fleetwright-gang";
    /// The UID of the Infrastructure of the cluster an instance was launched by.
    pub const CLUSTER_UID: &str = "fleetwright-cluster-uid";

    /// The key of the tag that says which cluster a thing belongs to.
    pub fn cluster(infrastructure_name: &str) -> String {
        format!("kubernetes.io/cluster/{infrastructure_name}")
    }
}
