//! Roles in a cluster: written, or looked at.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::Value;

use super::{IDENTITIES, PROCESS, Place, Right, account, manifests};
use crate::seed::{SYSTEM_NAMESPACE, SeedError};

/// Who writes them.
const MANAGER: &str = "fleetwright/seed";

/// Somebody may not do what they must.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// It cannot be found out.
    #[error(
        "cannot find out what {account} may do: this user must be allowed to impersonate the \
         ServiceAccounts of {SYSTEM_NAMESPACE} (apply deploy/rbac.yaml), or controllers act as this \
         user themselves with --set client.identities=Own"
    )]
    Ask {
        /// The ServiceAccount.
        account: String,
        /// What the API says.
        source: Box<kube::Error>,
    },
    /// They may not.
    #[error(
        "ServiceAccount {SYSTEM_NAMESPACE}/{account} may not {verb} {resource}: apply deploy/rbac.yaml, \
         or have it done with --rbac install"
    )]
    Lacks {
        /// The ServiceAccount.
        account: String,
        /// The verb.
        verb: &'static str,
        /// The resource.
        resource: String,
    },
}

/// Writes accounts, roles and bindings, or brings them up to date.
pub async fn install(client: &Client, machine_namespace: &str) -> Result<(), SeedError> {
    for object in manifests(machine_namespace) {
        apply(client, object).await?;
    }
    Ok(())
}

/// Writes an object of any kind.
pub(super) async fn apply(client: &Client, object: Value) -> Result<(), SeedError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    let version = text(&object["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let kind_of = GroupVersionKind::gvk(group, version, &kind);
    let resource = ApiResource::from_gvk(&kind_of);
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(object))
        .await
        .map(drop)
        .map_err(|source| SeedError::new(&format!("{kind} {name}"), source))
}

/// Finds out whether every controller may do what it must; `client` gives a client as one of them.
pub async fn check(
    client: impl Fn(&str) -> Client,
    machine_namespace: &str,
) -> Result<(), AccessError> {
    for identity in IDENTITIES.iter().filter(|identity| identity.name != PROCESS) {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(client(identity.name));
        for right in identity.rights.iter().filter(|right| right.unseen.is_none()) {
            for verb in right.verbs {
                let review = review(right, verb, machine_namespace);
                let answer = reviews.create(&PostParams::default(), &review).await;
                let answer = answer.map_err(|source| AccessError::Ask {
                    account: account(identity.name),
                    source: Box::new(source),
                })?;
                if !answer.status.is_some_and(|status| status.allowed) {
                    let resource = match right.group {
                        "" => right.resource.to_owned(),
                        group => format!("{} of {group}", right.resource),
                    };
                    return Err(AccessError::Lacks {
                        account: account(identity.name),
                        verb,
                        resource,
                    });
                }
            }
        }
    }
    Ok(())
}

fn review(right: &Right, verb: &str, machine_namespace: &str) -> SelfSubjectAccessReview {
    let (resource, subresource) = right.resource.split_once('/').unwrap_or((right.resource, ""));
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: text(right.group),
                resource: text(resource),
                subresource: text(subresource),
                verb: text(verb),
                namespace: match right.place {
                    Place::Cluster => None,
                    Place::Machines => text(machine_namespace),
                    Place::System => text(SYSTEM_NAMESPACE),
                },
                name: right.names.first().and_then(|name| text(name)),
                ..ResourceAttributes::default()
            }),
            non_resource_attributes: None,
        },
        ..SelfSubjectAccessReview::default()
    }
}
