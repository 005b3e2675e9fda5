//! Instances that were launched for a Machine that is not there to take them.
//!
//! Two leaders at once, or a finalizer that somebody removed by hand, can leave an instance that
//! no Machine will ever ask for. One that was launched together with others and was never given to
//! a Machine is terminated: nobody can have put it to use. One that carries the name of a Machine
//! that is gone may have been kept on purpose: it is counted and named in the log.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fleetwright_api::machine::Machine;
use fleetwright_cloud::Instance;
use fleetwright_runtime::Informer;
use kube::ResourceExt as _;
use tokio::time::{Instant, sleep};

use super::intent::Intent;
use crate::{
    clouds::{Clouds, Site},
    machine::instance_id,
};

/// How often they are looked for, in what is known anyway.
const PERIOD: Duration = Duration::from_mins(2);
/// An instance is left alone for this long: intents, answers and tags take their time.
const GRACE: Duration = Duration::from_mins(10);

/// What Machines lay claim to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    uids: BTreeSet<String>,
    instances: BTreeSet<String>,
    tokens: BTreeSet<(String, u32)>,
    /// Somebody's claim cannot be read, so that nothing can be ruled out.
    unreadable: bool,
}

impl Claims {
    /// The claims of these Machines.
    pub fn of<'a>(machines: impl IntoIterator<Item = &'a Machine>) -> Self {
        let mut claims = Self::default();
        for machine in machines {
            claims.uids.extend(machine.uid());
            claims.instances.extend(instance_id(machine));
            match Intent::of(machine) {
                Ok(Some(intent)) => {
                    claims.tokens.insert((intent.token, intent.index));
                }
                Ok(None) => {}
                Err(_) => claims.unreadable = true,
            }
        }
        claims
    }
}

/// What an instance without a Machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphan {
    /// It was never anybody's.
    NeverTaken,
    /// Its Machine is gone.
    LeftBehind,
}

/// Whether an instance of ours is nobody's.
pub fn orphan(instance: &Instance, claims: &Claims) -> Option<Orphan> {
    if !instance.state.exists() || claims.instances.contains(&instance.id) || claims.unreadable {
        return None;
    }
    if let Some(uid) = instance.machine_uid() {
        return (!claims.uids.contains(uid)).then_some(Orphan::LeftBehind);
    }
    let claim = (instance.gang()?.to_owned(), instance.launch_index?);
    (!claims.tokens.contains(&claim)).then_some(Orphan::NeverTaken)
}

/// Looks after orphans for ever.
pub(crate) async fn run(machines: Informer<Machine>, clouds: Clouds) {
    machines.wait_synced().await;
    let mut since: BTreeMap<String, Instant> = BTreeMap::new();
    loop {
        sleep(PERIOD).await;
        let known = machines.list();
        let claims = Claims::of(known.iter().map(AsRef::as_ref));
        let now = Instant::now();
        let mut still = BTreeMap::new();
        for site in clouds.sites() {
            for instance in site.inventory.all() {
                let Some(orphan) = orphan(&instance, &claims) else { continue };
                let first = since.get(&instance.id).copied().unwrap_or(now);
                still.insert(instance.id.clone(), first);
                if now.duration_since(first) >= GRACE {
                    settle(&site, &instance, orphan).await;
                }
            }
        }
        since = still;
    }
}

async fn settle(site: &Site, instance: &Instance, orphan: Orphan) {
    match orphan {
        Orphan::LeftBehind => {
            tracing::warn!(instance = instance.id, site = site.name, "its Machine is gone");
        }
        Orphan::NeverTaken => {
            tracing::warn!(instance = instance.id, site = site.name, "nobody's: terminating");
            if let Err(error) = site.retire(BTreeSet::from([instance.id.clone()])).await {
                tracing::warn!(instance = instance.id, %error, "cannot terminate");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::launch::intent::ANNOTATION;
    use fleetwright_cloud::{GANG_TAG, InstanceState, MACHINE_UID_TAG};
    use serde_json::json;

    use super::*;

    fn instance(tags: &[(&str, &str)]) -> Instance {
        let mut instance = crate::group::testbed::member("i-1", "g", "a", InstanceState::Running);
        instance.launch_index = Some(1);
        instance.tags =
            tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        instance
    }

    fn machine(uid: &str, index: u32, id: Option<&str>) -> Machine {
        let intent = json!({"version": 1, "op": "launch", "token": "t", "paramsHash": "h",
            "index": index, "size": 3, "min": 3, "attempt": 0, "at": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({
            "metadata": {"name": uid, "uid": uid,
                "annotations": {"fleetwright.dev/intent": intent.to_string()}},
            "status": {"providerStatus": {"instanceId": id}},
        }))
        .unwrap()
    }

    #[test]
    fn only_what_nobody_can_claim_is_an_orphan() {
        let gang = instance(&[(GANG_TAG, "t")]);
        let own = instance(&[(GANG_TAG, "t"), (MACHINE_UID_TAG, "u")]);
        let foreign = instance(&[("Name", "pet")]);
        let judge =
            |instance: &Instance, machines: &[Machine]| orphan(instance, &Claims::of(machines));
        assert_eq!(judge(&gang, &[]), Some(Orphan::NeverTaken));
        assert_eq!(judge(&gang, &[machine("u", 2, None)]), Some(Orphan::NeverTaken));
        assert_eq!(judge(&gang, &[machine("u", 1, None)]), None);
        assert_eq!(judge(&gang, &[machine("u", 2, Some("i-1"))]), None);
        assert_eq!(judge(&own, &[]), Some(Orphan::LeftBehind));
        assert_eq!(judge(&own, &[machine("u", 1, None)]), None);
        assert_eq!(judge(&foreign, &[]), None);
        let gone = Instance { state: InstanceState::Terminated, ..gang.clone() };
        assert_eq!(judge(&gone, &[]), None);
        let mut odd = machine("x", 0, None);
        odd.metadata.annotations.as_mut().unwrap().insert(ANNOTATION.to_owned(), "?".to_owned());
        assert_eq!(judge(&gang, &[odd]), None, "it may be the claim");
    }
}
