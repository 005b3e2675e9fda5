//! Instances that were launched for a Machine that is not there to take them.
//!
//! Two leaders at once, or a finalizer that somebody removed by hand, can leave an instance that
//! no Machine will ever ask for. It is terminated when all of this holds:
//!
//! 1. Its tags say that this very cluster launched it ([`fleetwright_cloud::CLUSTER_UID_TAG`]), not
//!    another one of the same name.
//! 2. It has been without a Machine for [`GRACE`] in what this process watches.
//! 3. A consistent read of all Machines of all namespaces, made after it was seen, has none of its
//!    UID, none that says to have it, and none whose intent it answers. What is launched has its
//!    Machine's intent from before; UIDs do not come again and attempts only grow: so nobody can
//!    ask for it later.
//! 4. It was never given to a Machine, or no Node runs on it. Whoever removes a finalizer by hand
//!    to keep an instance has one that works; one that leaked does not join a cluster that lets
//!    only Machines in.
//!
//! All others are left as they are, counted, and told in an event about the Infrastructure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fleetwright_api::{
    config::Infrastructure,
    machine::Machine,
    names::{self, event},
};
use fleetwright_cloud::{Instance, InstanceState};
use fleetwright_runtime::{EventRecorder, EventType, Informer, ObjectKey};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, Resource as _, ResourceExt as _, api::ListParams};
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::{Instant, sleep};

use super::intent::Intent;
use crate::{
    clouds::{Clouds, Site},
    machine::instance_id,
};

/// How often they are looked for, in what is known anyway.
const PERIOD: Duration = Duration::from_mins(2);
/// An instance is left alone for this long: intents, answers and tags take their time.
pub const GRACE: Duration = Duration::from_mins(10);

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

/// What becomes of an orphan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sentence {
    /// It goes.
    Terminate,
    /// Nothing says that this cluster launched it.
    NotOurs,
    /// A Node runs on it.
    InUse,
}

/// What the Kubernetes API holds, read after an orphan was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// What Machines lay claim to.
    pub claims: Claims,
    /// The provider IDs of Nodes.
    pub nodes: BTreeSet<String>,
}

impl Proof {
    /// Reads it. Without a resource version the server answers with what is there now.
    async fn read(client: &Client) -> Result<Self, kube::Error> {
        let machines = Api::<Machine>::all(client.clone()).list(&ListParams::default()).await?;
        let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
        let provider_ids = nodes.items.into_iter().filter_map(|node| node.spec?.provider_id);
        Ok(Self { claims: Claims::of(&machines.items), nodes: provider_ids.collect() })
    }
}

/// What becomes of an instance; none when it is somebody's after all.
pub fn sentence(instance: &Instance, cluster_uid: &str, proof: &Proof) -> Option<Sentence> {
    let orphan = orphan(instance, &proof.claims)?;
    Some(if cluster_uid.is_empty() || instance.cluster_uid() != Some(cluster_uid) {
        Sentence::NotOurs
    } else if orphan == Orphan::LeftBehind && proof.nodes.contains(&instance.provider_id) {
        Sentence::InUse
    } else {
        Sentence::Terminate
    })
}

/// Looks after orphans.
pub(crate) struct Sweep {
    pub(crate) client: Client,
    pub(crate) machines: Informer<Machine>,
    pub(crate) clouds: Clouds,
    pub(crate) events: EventRecorder,
    /// How many are left as they are.
    pub(crate) left: Gauge,
}

impl Sweep {
    /// Goes on for ever.
    pub(crate) async fn run(self) {
        self.machines.wait_synced().await;
        let mut since: BTreeMap<String, Instant> = BTreeMap::new();
        let mut told = BTreeSet::new();
        loop {
            sleep(PERIOD).await;
            let known = self.machines.list();
            let claims = Claims::of(known.iter().map(AsRef::as_ref));
            let now = Instant::now();
            let mut still = BTreeMap::new();
            let mut due = Vec::new();
            for site in self.clouds.sites() {
                for instance in site.inventory.all() {
                    if orphan(&instance, &claims).is_none() {
                        continue;
                    }
                    let first = since.get(&instance.id).copied().unwrap_or(now);
                    still.insert(instance.id.clone(), first);
                    if now.duration_since(first) >= GRACE {
                        due.push((site.clone(), instance));
                    }
                }
            }
            since = still;
            told.retain(|id| since.contains_key(id));
            let mut left = 0;
            if !due.is_empty() {
                match Proof::read(&self.client).await {
                    Ok(proof) => {
                        for (site, instance) in due {
                            left += self.settle(&site, &instance, &proof, &mut told).await;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot tell whether instances are anybody's");
                        left = i64::try_from(due.len()).unwrap_or(i64::MAX);
                    }
                }
            }
            self.left.set(left);
        }
    }

    /// Carries a sentence out. Says how many are left.
    async fn settle(
        &self,
        site: &Site,
        instance: &Instance,
        proof: &Proof,
        told: &mut BTreeSet<String>,
    ) -> i64 {
        let why = match sentence(instance, &site.cluster_uid, proof) {
            None => return 0,
            Some(Sentence::Terminate) if instance.state == InstanceState::ShuttingDown => return 0,
            Some(Sentence::Terminate) => {
                tracing::warn!(instance = instance.id, site = site.name, "nobody's: terminating");
                let Err(error) = site.retire(BTreeSet::from([instance.id.clone()])).await else {
                    return 0;
                };
                tracing::warn!(instance = instance.id, %error, "cannot terminate");
                return 1;
            }
            Some(Sentence::NotOurs) => "no tag says that this cluster launched it",
            Some(Sentence::InUse) => "a Node runs on it",
        };
        if told.insert(instance.id.clone()) {
            let text = format!(
                "instance {} in {} belongs to this cluster and no Machine has it: it is left as it \
                 is, since {why}. Terminate it if nobody needs it",
                instance.id, site.name
            );
            tracing::warn!(instance = instance.id, site = site.name, why, "has no Machine");
            let infrastructure = ObjectKey::cluster(names::INFRASTRUCTURE);
            if let Some(about) = self.clouds.infrastructures().get(&infrastructure) {
                let about = Infrastructure::object_ref(&about, &());
                let reason = event::INSTANCE_WITHOUT_MACHINE;
                self.events.record(&about, EventType::Warning, reason, &text);
            }
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use crate::launch::intent::ANNOTATION;
    use fleetwright_cloud::{CLUSTER_UID_TAG, GANG_TAG, InstanceState, MACHINE_UID_TAG};
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

    #[test]
    fn only_what_this_cluster_launched_and_nobody_uses_goes() {
        let ours = [(MACHINE_UID_TAG, "u"), (CLUSTER_UID_TAG, "here")];
        let proof = Proof::default();
        let judge = |tags: &[(&str, &str)], here: &str, proof: &Proof| {
            sentence(&instance(tags), here, proof)
        };
        assert_eq!(judge(&ours, "here", &proof), Some(Sentence::Terminate));
        // Another cluster of the same name, one that cannot be told from others, an older launch.
        for (tags, here) in [(&ours[..], "there"), (&ours[..], ""), (&ours[..1], "here")] {
            assert_eq!(judge(tags, here, &proof), Some(Sentence::NotOurs), "{tags:?} {here}");
        }
        let untold = [(MACHINE_UID_TAG, "u"), (CLUSTER_UID_TAG, "")];
        assert_eq!(judge(&untold, "", &proof), Some(Sentence::NotOurs));
        let used = Proof { nodes: BTreeSet::from(["aws:///a/i-1".to_owned()]), ..Proof::default() };
        assert_eq!(judge(&ours, "here", &used), Some(Sentence::InUse));
        let never_taken = [(GANG_TAG, "t"), (CLUSTER_UID_TAG, "here")];
        assert_eq!(judge(&never_taken, "here", &used), Some(Sentence::Terminate));
        // What the watch missed, the read has: in whatever namespace.
        let claimed = Proof { claims: Claims::of(&[machine("u", 2, None)]), ..Proof::default() };
        assert_eq!(judge(&ours, "here", &claimed), None);
    }
}
