//! Parts that several kinds share.

use super::Schema;

/// Names with an optional domain before a slash, as condition types and hooks have.
pub(super) const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// A reference to an object of any kind.
pub(super) fn object_reference(text: &str) -> Schema {
    Schema::object(
        text,
        [
            ("apiVersion", Schema::string("Group and version of the object.")),
            (
                "fieldPath",
                Schema::string("The part of the object that is meant, if not all of it."),
            ),
            ("kind", Schema::string("Kind of the object.")),
            ("name", Schema::string("Name of the object.")),
            ("namespace", Schema::string("Namespace of the object.")),
            ("resourceVersion", Schema::string("The version of the object that is meant, if any.")),
            ("uid", Schema::string("UID of the object.")),
        ],
    )
    .atomic()
}

/// Which labels objects must have.
pub(super) fn label_selector(text: &str) -> Schema {
    let requirement = Schema::object(
        "A requirement on one label.",
        [
            ("key", Schema::string("The label's key.")),
            ("operator", Schema::string("In, NotIn, Exists or DoesNotExist.")),
            (
                "values",
                Schema::atomic_list(
                    "The values for In and NotIn; none for the others.",
                    Schema::string(""),
                ),
            ),
        ],
    )
    .required(&["key", "operator"]);
    Schema::object(
        text,
        [
            (
                "matchExpressions",
                Schema::atomic_list("Requirements, all of which hold.", requirement),
            ),
            ("matchLabels", Schema::texts("Labels and their values, all of which are there.")),
        ],
    )
    .atomic()
}

/// Metadata that is handed on to another object.
pub(super) fn embedded_metadata(text: &str) -> Schema {
    let owner = Schema::object(
        "An object that owns this one.",
        [
            ("apiVersion", Schema::string("Group and version of the owner.")),
            (
                "blockOwnerDeletion",
                Schema::boolean(
                    "Whether a foreground deletion of the owner waits for this object.",
                ),
            ),
            ("controller", Schema::boolean("Whether the owner is the one that controls it.")),
            ("kind", Schema::string("Kind of the owner.")),
            ("name", Schema::string("Name of the owner.")),
            ("uid", Schema::string("UID of the owner.")),
        ],
    )
    .required(&["apiVersion", "kind", "name", "uid"])
    .atomic();
    Schema::object(
        text,
        [
            ("annotations", Schema::texts("Annotations to hand on.")),
            ("generateName", Schema::string("Prefix of a generated name.")),
            ("labels", Schema::texts("Labels to hand on.")),
            ("name", Schema::string("A name.")),
            ("namespace", Schema::string("A namespace.")),
            ("ownerReferences", Schema::list_by("uid", "Owners.", owner)),
        ],
    )
}

/// Conditions of the Machine API: with a severity, without an observed generation.
pub(super) fn machine_conditions(text: &str) -> Schema {
    let condition = Schema::object(
        "Whether something holds.",
        [
            (
                "lastTransitionTime",
                Schema::time("When status, reason, severity or message last changed."),
            ),
            ("message", Schema::string("Why, for people.")),
            ("reason", Schema::string("Why, as one word in CamelCase.")),
            (
                "severity",
                Schema::string(
                    "How serious it is: Error, Warning or Info. Only with status False.",
                ),
            ),
            ("status", Schema::string("True, False or Unknown.")),
            ("type", Schema::string("What it is about, in CamelCase.")),
        ],
    )
    .required(&["lastTransitionTime", "status", "type"]);
    Schema::list_by("type", text, condition)
}

/// Conditions as Kubernetes defines them.
pub(super) fn conditions(text: &str) -> Schema {
    let condition = Schema::object(
        "Whether something holds.",
        [
            ("lastTransitionTime", Schema::time("When the status last changed.")),
            ("message", Schema::string("Why, for people.").set("maxLength", 32768.into())),
            (
                "observedGeneration",
                Schema::int64("The generation of the spec that the condition speaks of.")
                    .at_least(0),
            ),
            (
                "reason",
                Schema::string("Why, as one word in CamelCase.")
                    .length(1, 1024)
                    .pattern("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
            ),
            (
                "status",
                Schema::string("True, False or Unknown.").one_of(&["True", "False", "Unknown"]),
            ),
            (
                "type",
                Schema::string("What it is about, in CamelCase.")
                    .set("maxLength", 316.into())
                    .pattern(QUALIFIED_NAME),
            ),
        ],
    )
    .required(&["lastTransitionTime", "message", "reason", "status", "type"]);
    Schema::list_by("type", text, condition)
}
