//! What objects of a kind share, each having its own part of it: addresses, ports.
//!
//! Who holds what is read from the stored objects, so nothing can leak. Between the choice and the
//! write, a reservation keeps others from choosing the same.

use std::{collections::BTreeSet, sync::Arc};

use fleetwright_kstore::{At, Key, Scope};
use parking_lot::Mutex;
use serde_json::Value;

use super::Call;
use crate::{
    gvk::GroupVersionKind,
    kinds::{Find, NotAllocated, Pool},
    object,
    registry::Resource,
    server::Server,
    status::{ApiError, Result},
    storage,
};

/// What is reserved: of which resource, and what.
type Reserved = BTreeSet<(Arc<str>, String)>;

/// What objects hold that are about to be written.
#[derive(Default)]
pub(crate) struct Reservations(Arc<Mutex<Reserved>>);

/// Reserved until it is dropped.
pub(crate) struct Held {
    reservations: Arc<Mutex<Reserved>>,
    own: Vec<(Arc<str>, String)>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut reserved = self.reservations.lock();
        for own in &self.own {
            reserved.remove(own);
        }
    }
}

impl Call {
    /// Gives an object its share of what its kind shares.
    pub(crate) fn allocate(&self, new: &mut Value, old: Option<&Value>) -> Result<Option<Held>> {
        let resource = &self.resource;
        if !resource.kind.allocates() {
            return Ok(None);
        }
        let reservations = &self.server.reservations().0;
        let mut reserved = reservations.lock();
        let own = (object::namespace(new), object::name(new));
        let mut taken: BTreeSet<String> = stored(&self.server, resource)
            .iter()
            .filter(|other| (object::namespace(other), object::name(other)) != own)
            .flat_map(|other| resource.kind.holds(other))
            .collect();
        taken.extend(
            reserved
                .iter()
                .filter(|(storage, _)| *storage == resource.storage)
                .map(|(_, held)| held.clone()),
        );
        let pool = Pool { taken: &taken, random: self.server.random() };
        match resource.kind.allocate(new, old, &pool) {
            Ok(()) => {}
            Err(NotAllocated::Invalid(errors)) => return Err(self.invalid(new, &errors)),
            Err(NotAllocated::Internal(why)) => return Err(ApiError::internal(why)),
        }
        let before = old.map(|old| resource.kind.holds(old)).unwrap_or_default();
        let own: Vec<(Arc<str>, String)> = resource
            .kind
            .holds(new)
            .into_iter()
            .filter(|held| !before.contains(held))
            .map(|held| (resource.storage.clone(), held))
            .collect();
        reserved.extend(own.iter().cloned());
        Ok(Some(Held { reservations: Arc::clone(reservations), own }))
    }
}

/// All objects of a resource, as they are stored.
fn stored(server: &Server, resource: &Resource) -> Vec<Value> {
    let scope = Scope::all(resource.storage.clone());
    let listing = server.storage().list(&scope, At::Latest, None);
    let items = listing.map(|listing| listing.items).unwrap_or_default();
    items.iter().filter_map(|item| storage::parse(&item.json).ok()).collect()
}

impl Find for Server {
    fn named(&self, kind: &GroupVersionKind, name: &str) -> Option<Value> {
        let resource = self.registry().find_kind(&kind.group, &kind.version, &kind.kind)?;
        let key = Key::new(resource.storage.clone(), "", name);
        storage::parse(&self.storage().get(&key)?.json).ok()
    }

    fn all(&self, kind: &GroupVersionKind) -> Vec<Value> {
        let resource = self.registry().find_kind(&kind.group, &kind.version, &kind.kind);
        resource.map(|resource| stored(self, &resource)).unwrap_or_default()
    }
}
