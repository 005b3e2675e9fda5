//! Owners of one kind and the objects that they control: who belongs to whom, and what has been
//! created or deleted and not been seen yet.

use std::{fmt, sync::Arc};

use fleetwright_runtime::{Action, Change, Expectations, Informer, ObjectKey};
use k8s_openapi::{
    NamespaceResourceScope,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference},
};
use kube::{Resource, api::Patch};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    cluster::{BY_CONTROLLER, ORPHANS, SharedCluster, managed, of_same},
    error::{Failure, Outcome},
    facts::{self, selectors},
    lifecycle::{self, MANAGER},
};

/// What can be owned or own.
pub(crate) trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + DeserializeOwned
    + Serialize
    + fmt::Debug
    + Send
    + Sync
    + 'static
{
}

impl<T> Object for T where
    T: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Serialize
        + fmt::Debug
        + Send
        + Sync
        + 'static
{
}

/// A kind that owns others by a selector.
pub(crate) trait Workload: Object {
    /// The name of its controller.
    const COMPONENT: &'static str;

    /// Which objects belong to it.
    fn selector(&self) -> Option<&LabelSelector>;
}

/// Owners and children.
pub(crate) struct Family<O, C> {
    pub(crate) cluster: SharedCluster,
    pub(crate) owners: Informer<O>,
    pub(crate) children: Informer<C>,
    pub(crate) expectations: Expectations<ObjectKey>,
}

impl<O: Workload, C: Object> Family<O, C> {
    pub(crate) fn new(
        cluster: &SharedCluster,
        owners: &Informer<O>,
        children: &Informer<C>,
    ) -> Self {
        let expectations = Expectations::new();
        let (settled, kind) = (expectations.clone(), O::kind(&()).into_owned());
        children.on_change(move |change| {
            let child = change.object();
            let Some(owner) = controller_key(child.meta(), &kind) else { return };
            if !matches!(change, Change::Deleted { .. }) {
                settled.create_settled(&owner, child.meta().name.as_deref().unwrap_or_default());
            }
            if matches!(change, Change::Deleted { .. }) || child.meta().deletion_timestamp.is_some()
            {
                settled.delete_settled(&owner, facts::uid(child.meta()));
            }
        });
        Self {
            cluster: Arc::clone(cluster),
            owners: owners.clone(),
            children: children.clone(),
            expectations,
        }
    }

    /// Reconciles owners when they or their children change.
    pub(crate) fn spawn<R, F>(
        self,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
        more: impl FnOnce(
            fleetwright_runtime::Controller<ObjectKey>,
        ) -> fleetwright_runtime::Controller<ObjectKey>,
        reconcile: R,
    ) where
        R: Fn(Arc<Self>, Arc<O>, ObjectKey) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Action, Failure>> + Send + 'static,
    {
        let (owners, kind) = (self.owners.clone(), O::kind(&()).into_owned());
        let controller = self
            .cluster
            .controller(O::COMPONENT)
            .watches(&self.owners, |owner| [ObjectKey::of(owner)])
            .watches(&self.children, move |child| owners_of(child, &kind, &owners));
        let controller = more(controller);
        let family = Arc::new(self);
        tasks.spawn(lifecycle::run(controller, stop.clone(), move |key: ObjectKey| {
            let owner = family.owners.get(&key);
            let running = owner.map(|owner| reconcile(Arc::clone(&family), owner, key.clone()));
            if running.is_none() {
                family.expectations.forget(&key);
            }
            async move {
                match running {
                    Some(running) => running.await,
                    None => Ok(Action::await_change()),
                }
            }
        }));
    }

    /// The children of an owner. Those that no longer fit are let go, orphans that fit are
    /// taken in; both show when the server has confirmed it.
    pub(crate) async fn claim(&self, owner: &O) -> Result<Vec<Arc<C>>, Failure> {
        let meta = owner.meta();
        let owned = self.children.by_index(BY_CONTROLLER, facts::uid(meta));
        let Some(selector) = owner.selector() else { return Ok(owned) };
        let fits = |child: &C| selectors::matches(selector, facts::labels(child.meta()));
        if meta.deletion_timestamp.is_some() {
            return Ok(owned);
        }
        let mut kept = Vec::new();
        for child in owned {
            if fits(&child) {
                kept.push(child);
            } else {
                self.release(owner, &child).await?;
            }
        }
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let orphans = self.children.by_index(ORPHANS, namespace);
        let wanted = |child: &&Arc<C>| child.meta().deletion_timestamp.is_none() && fits(child);
        let mut lives = None;
        for orphan in orphans.iter().filter(wanted) {
            let lives = match lives {
                Some(lives) => lives,
                None => *lives.insert(self.still_lives(owner).await?),
            };
            if lives {
                self.adopt(owner, orphan).await?;
            }
        }
        Ok(kept)
    }

    /// The copy may be old, and what is adopted by the dead is deleted with them.
    async fn still_lives(&self, owner: &O) -> Result<bool, Failure> {
        let key = ObjectKey::of(owner);
        let current = self.cluster.of_namespace::<O>(&key.namespace).get_opt(&key.name).await;
        let current = current.trying("read the owner", &key)?;
        Ok(current.is_some_and(|current| {
            current.meta().uid == owner.meta().uid && current.meta().deletion_timestamp.is_none()
        }))
    }

    async fn adopt(&self, owner: &O, child: &C) -> Result<(), Failure> {
        let patch = json!({"metadata": {
            "uid": child.meta().uid,
            "ownerReferences": [reference(owner)],
        }});
        self.patch_child(child, &Patch::Strategic(patch), "adopt").await
    }

    async fn release(&self, owner: &O, child: &C) -> Result<(), Failure> {
        let patch = json!({"metadata": {
            "uid": child.meta().uid,
            "ownerReferences": [{"$patch": "delete", "uid": owner.meta().uid}],
        }});
        self.patch_child(child, &Patch::Strategic(patch), "release").await
    }

    /// Patches a child if it is still the same.
    pub(crate) async fn patch_child(
        &self,
        child: &C,
        patch: &Patch<Value>,
        what: &'static str,
    ) -> Result<(), Failure> {
        let key = ObjectKey::of(child);
        let api = self.cluster.of_namespace::<C>(&key.namespace);
        let patched = api.patch(&key.name, &managed(MANAGER), patch).await;
        patched.unless_gone().trying(what, &key)?;
        Ok(())
    }

    /// Reports the whole status of an owner if it is still the same.
    pub(crate) async fn report(&self, owner: &O, status: impl Serialize) -> Result<(), Failure> {
        self.send_status(owner, whole_status(owner, status)).await?;
        Ok(())
    }

    /// Reports the whole status of an owner if nobody has changed it since it was read. False if
    /// somebody has, who will be heard of.
    pub(crate) async fn report_exactly(
        &self,
        owner: &O,
        status: impl Serialize,
    ) -> Result<bool, Failure> {
        let mut patch = whole_status(owner, status);
        patch["metadata"]["resourceVersion"] = json!(owner.meta().resource_version);
        self.send_status(owner, patch).await
    }

    async fn send_status(&self, owner: &O, patch: Value) -> Result<bool, Failure> {
        let key = ObjectKey::of(owner);
        let api = self.cluster.of_namespace::<O>(&key.namespace);
        let patched = api.patch_status(&key.name, &managed(MANAGER), &Patch::Merge(patch)).await;
        Ok(patched.unless_gone().trying("report the status of", &key)?.is_some())
    }
}

/// A merge keeps what is not said, and what is empty is not said: it has to be taken out.
fn whole_status<O: Object>(owner: &O, status: impl Serialize) -> Value {
    let mut status = serde_json::to_value(status).unwrap_or_default();
    let known = serde_json::to_value(owner).unwrap_or_default();
    take_out(&known["status"], &mut status);
    of_same(owner.meta(), "status", status)
}

fn take_out(old: &Value, new: &mut Value) {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object_mut()) else { return };
    for (field, value) in old {
        match new.get_mut(field) {
            None => {
                new.insert(field.clone(), Value::Null);
            }
            Some(kept) => take_out(value, kept),
        }
    }
}

/// The reference by which an owner controls a child.
pub(crate) fn reference<O: Object>(owner: &O) -> OwnerReference {
    OwnerReference {
        api_version: O::api_version(&()).into_owned(),
        kind: O::kind(&()).into_owned(),
        name: owner.meta().name.clone().unwrap_or_default(),
        uid: facts::uid(owner.meta()).to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The controller of an object, if it is of a kind.
fn controller_key(meta: &ObjectMeta, kind: &str) -> Option<ObjectKey> {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    let owner = owners.iter().find(|owner| owner.controller == Some(true) && owner.kind == kind)?;
    Some(ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), &owner.name))
}

/// Whom a child concerns: its controller, or, if it has none, everybody whom it would fit.
fn owners_of<O: Workload, C: Object>(
    child: &C,
    kind: &str,
    owners: &Informer<O>,
) -> Vec<ObjectKey> {
    let meta = child.meta();
    if facts::controller_uid(meta).is_some() {
        return controller_key(meta, kind).into_iter().collect();
    }
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let labels = facts::labels(meta);
    let fits = |owner: &Arc<O>| owner.selector().is_some_and(|s| selectors::matches(s, labels));
    owners
        .list_in(namespace)
        .iter()
        .filter(|owner| fits(owner))
        .map(|o| ObjectKey::of(&**o))
        .collect()
}
