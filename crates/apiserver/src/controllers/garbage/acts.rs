//! What the garbage collector does to objects.

use std::{collections::BTreeSet, sync::Arc};

use fleetwright_kschema::names::{FOREGROUND, ORPHAN};
use fleetwright_kstore::Key;
use http::Method;
use serde_json::{Value, json};

use super::{
    graph::{Dependent, Uid},
    live::{Live, Unknown},
    references::{Family, Propagation, Verdict, decide},
};
use crate::{
    internal::InternalClient,
    object,
    registry::Resource,
    server::Server,
    status::{ApiError, Result},
};

/// What came of a look at an object.
#[derive(Debug)]
pub(super) enum Outcome {
    /// What there was to do is done.
    Done,
    /// Its owners are there; these must still be seen in the graph, so that their end is.
    Owned(Vec<Uid>),
    /// An owner's kind is not served.
    UnknownKind,
}

/// Acts on objects.
#[derive(Clone)]
pub(super) struct Actor {
    pub server: Server,
    pub client: InternalClient,
}

impl Actor {
    /// Deletes an object if it is garbage. Owners that are `gone` need not be looked up.
    pub(super) async fn verify(
        &self,
        uid: &str,
        key: &Key,
        family: Family,
        gone: &BTreeSet<Uid>,
    ) -> Result<Outcome> {
        let Some(live) = Live::find(&self.server, key, uid) else { return Ok(Outcome::Done) };
        let states = match live.owner_states(&self.server, gone) {
            Ok(states) => states,
            Err(Unknown::Kind) => return Ok(Outcome::UnknownKind),
            Err(Unknown::Namespace) => return Ok(Outcome::Done),
        };
        let otherwise = if live.has_finalizer(ORPHAN) {
            Propagation::Orphan
        } else if live.has_finalizer(FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        match decide(&states, family, otherwise) {
            Verdict::Keep => {
                let uids = live.owners.iter().map(|owner| Uid::from(uid_of(owner)));
                return Ok(Outcome::Owned(uids.collect()));
            }
            Verdict::Unlink(stale) => {
                let left = |at: &usize| !stale.contains(at);
                let owners = live.owners.iter().enumerate();
                let owners = owners.filter(|(at, _)| left(at)).map(|(_, owner)| owner.clone());
                self.set_owners(&live, owners.collect()).await?;
            }
            Verdict::Delete { propagation, unblock: false } => {
                self.delete(&live, propagation).await?;
            }
            Verdict::Delete { propagation, unblock: true } => {
                let mut owners = live.owners.clone();
                for owner in owners.iter_mut().filter(|o| o["blockOwnerDeletion"] == true) {
                    object::set(owner, &["blockOwnerDeletion"], false);
                }
                self.set_owners(&live, owners).await?;
                if let Some(live) = Live::find(&self.server, key, uid) {
                    self.delete(&live, propagation).await?;
                }
            }
        }
        Ok(Outcome::Done)
    }

    /// Lets an object go whose dependents are gone.
    pub(super) async fn release(&self, uid: &str, key: &Key) -> Result<Outcome> {
        self.remove_finalizer(uid, key, FOREGROUND).await?;
        Ok(Outcome::Done)
    }

    /// Frees the dependents of an object, then lets it go.
    pub(super) async fn orphan(
        &self,
        uid: &str,
        key: &Key,
        dependents: &[Dependent],
    ) -> Result<Outcome> {
        let mut failure = None;
        for dependent in dependents {
            if let Err(error) = self.disown(dependent, uid).await {
                failure = Some(error);
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        self.remove_finalizer(uid, key, ORPHAN).await?;
        Ok(Outcome::Done)
    }

    async fn disown(&self, dependent: &Dependent, owner: &str) -> Result<()> {
        let Some(live) = Live::find(&self.server, &dependent.key, &dependent.uid) else {
            return Ok(());
        };
        let left: Vec<Value> = live.owners.iter().filter(|o| uid_of(o) != owner).cloned().collect();
        if left.len() == live.owners.len() { Ok(()) } else { self.set_owners(&live, left).await }
    }

    async fn set_owners(&self, live: &Live, owners: Vec<Value>) -> Result<()> {
        let owners = if owners.is_empty() { Value::Null } else { owners.into() };
        self.patch_metadata(live, "ownerReferences", owners).await
    }

    async fn remove_finalizer(&self, uid: &str, key: &Key, finalizer: &str) -> Result<()> {
        let Some(live) = Live::find(&self.server, key, uid) else { return Ok(()) };
        if !live.has_finalizer(finalizer) {
            return Ok(());
        }
        let left: Vec<&str> =
            live.finalizers.iter().map(|name| &**name).filter(|name| *name != finalizer).collect();
        let left = if left.is_empty() { Value::Null } else { json!(left) };
        self.patch_metadata(&live, "finalizers", left).await
    }

    /// Changes one field of the metadata of the object that was read, unless it changed.
    async fn patch_metadata(&self, live: &Live, field: &str, value: Value) -> Result<()> {
        let patch = json!({"metadata": {
            "uid": &*live.stored.meta.uid,
            "resourceVersion": live.stored.revision.to_string(),
            field: value,
        }});
        match self.client.merge(&self.path(&live.stored.key)?, &patch).await {
            Err(error) if error.reason() != "NotFound" => Err(error),
            _ => Ok(()),
        }
    }

    async fn delete(&self, live: &Live, propagation: Propagation) -> Result<()> {
        let key = &live.stored.key;
        let path = self.path(key)?;
        let mut options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation.name(),
            "preconditions": {
                "uid": &*live.stored.meta.uid,
                "resourceVersion": live.stored.revision.to_string(),
            },
        });
        let mut result = self.send_delete(&path, &options).await;
        if result.as_ref().is_err_and(|error| error.reason() == "Conflict") {
            let Some(now) = Live::find(&self.server, key, &live.stored.meta.uid) else {
                return Ok(());
            };
            // Frequent changes of something else must not keep garbage alive.
            if now.owners == live.owners {
                object::remove(&mut options, &["preconditions", "resourceVersion"]);
                result = self.send_delete(&path, &options).await;
            }
        }
        result
    }

    async fn send_delete(&self, path: &str, options: &Value) -> Result<()> {
        match self.client.send(Method::DELETE, path, "application/json", Some(options)).await {
            Err(error) if error.reason() != "NotFound" => Err(error),
            _ => Ok(()),
        }
    }

    fn path(&self, key: &Key) -> Result<String> {
        let resource = self
            .resource(&key.resource)
            .ok_or_else(|| ApiError::internal(format!("{} is not served", key.resource)))?;
        Ok(InternalClient::path(&resource, &key.namespace, &key.name))
    }

    fn resource(&self, storage: &str) -> Option<Arc<Resource>> {
        let served: Vec<Arc<Resource>> =
            self.server.registry().all().into_iter().filter(|r| *r.storage == *storage).collect();
        let preferred = served.iter().find(|r| r.group_version() == r.storage_version);
        preferred.or(served.first()).cloned()
    }
}

fn uid_of(owner: &Value) -> &str {
    object::text(owner, &["uid"])
}
