//! The status of disruption budgets, which evictions go by.

mod arithmetic;
mod notes;
mod scale;
mod stale;

use std::{collections::BTreeMap, time::Duration};

use fleetwright_kstore::{At, Key, Scope};
use parking_lot::Mutex;
use serde_json::Value;

pub(super) use self::stale::StaleConditions;
use self::{
    arithmetic::{Rule, Wanted, disrupted, failed_status, healthy, status},
    scale::Scales,
};
use super::{
    AGENT, PODS,
    driver::{Controller, Next, Seen},
    queue::Queue,
    recorder::{
        Recorder,
        Severity::{Normal, Warning},
    },
};
use crate::{
    internal::InternalClient,
    object,
    selector::LabelSelector,
    server::Server,
    status::{ApiError, Result},
    storage::{self, StoredObject},
};

const BUDGETS: &str = "policy/poddisruptionbudgets";

/// Keeps the status of budgets.
pub(super) struct Disruption {
    server: Server,
    client: InternalClient,
    recorder: Recorder,
    /// What each budget selects, by namespace and name.
    selectors: Mutex<BTreeMap<Key, LabelSelector>>,
}

impl Disruption {
    pub(super) fn new(server: &Server) -> Self {
        let client = InternalClient::new(server, AGENT);
        Self {
            server: server.clone(),
            recorder: Recorder::new(server, &client, "controllermanager"),
            client,
            selectors: Mutex::default(),
        }
    }

    fn select(&self, budget: &StoredObject) {
        let parsed = storage::parse(&budget.json).unwrap_or_default();
        let selector = LabelSelector::from_object(object::get(&parsed, &["spec", "selector"]));
        let mut selectors = self.selectors.lock();
        match selector {
            Some(selector) => selectors.insert(budget.key.clone(), selector),
            None => selectors.remove(&budget.key),
        };
    }
}

impl Controller for Disruption {
    type Key = Key;
    const NAME: &'static str = "disruption budgets";
    const FOLLOWS: &'static [&'static str] = &[BUDGETS, PODS];

    fn observe(&self, seen: &Seen<'_>, queue: &mut Queue<Key>) {
        let key = &seen.object.key;
        if seen.is(BUDGETS) {
            if seen.is_gone() {
                self.selectors.lock().remove(key);
            } else {
                self.select(seen.object);
                queue.add(key.clone());
            }
            return;
        }
        // A pod whose labels changed may have left a budget.
        let states = [Some(seen.object), seen.previous];
        let selectors = self.selectors.lock();
        let first = Key::new(BUDGETS, key.namespace.clone(), "");
        let in_namespace =
            selectors.range(first..).take_while(|(budget, _)| budget.namespace == key.namespace);
        for (budget, selector) in in_namespace {
            let selected = |pod: &&StoredObject| selector.matches(|label| pod.meta.label(label));
            if states.iter().flatten().any(selected) {
                queue.add(budget.clone());
            }
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<Next> {
        let Some(stored) = self.server.storage().get(key) else { return Ok(Next::Rest) };
        let mut budget = storage::parse(&stored.json)?;
        object::set(&mut budget, &["apiVersion"], "policy/v1");
        object::set(&mut budget, &["kind"], "PodDisruptionBudget");
        let now = self.server.now();
        let pods = self.pods(&budget, &key.namespace)?;
        if pods.is_empty() {
            self.recorder.tell(&budget, Normal, "NoPods", "No matching pods found").await;
        }
        let wanted = match self.wanted(&budget, &key.namespace, &pods).await {
            Ok(wanted) => wanted,
            Err(why) => {
                let message = format!("Failed to calculate the number of expected pods: {why}");
                let reason = "CalculateExpectedPodCountFailed";
                self.recorder.tell(&budget, Warning, reason, &message).await;
                let failed = failed_status(&budget, &why, now);
                if budget.get("status") != Some(&failed) {
                    self.write(key, budget, failed).await?;
                }
                return Ok(Next::Rest);
            }
        };
        let disrupted = disrupted(&budget, &pods, now);
        for pod in
            pods.iter().filter(|pod| disrupted.overdue.iter().any(|n| n == object::name(pod)))
        {
            let mut pod = pod.clone();
            object::set(&mut pod, &["apiVersion"], "v1");
            object::set(&mut pod, &["kind"], "Pod");
            self.recorder.tell(&pod, Warning, "NotDeleted", &notes::not_deleted(&budget)).await;
        }
        let healthy = healthy(&pods, &disrupted, now);
        if let Some(status) = status(&budget, wanted, healthy, &disrupted, now) {
            self.write(key, budget, status).await?;
        }
        Ok(disrupted.recheck.map_or(Next::Rest, |at| {
            // Only after that moment has it been too long.
            let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
            Next::After(left + Duration::from_millis(1))
        }))
    }
}

impl Disruption {
    /// The pods that a budget selects.
    fn pods(&self, budget: &Value, namespace: &str) -> Result<Vec<Value>> {
        let selector = LabelSelector::from_object(object::get(budget, &["spec", "selector"]));
        let Some(selector) = selector else { return Ok(Vec::new()) };
        let scope = Scope::in_namespace(PODS, namespace);
        let listing =
            self.server.storage().list(&scope, At::Latest, None).map_err(ApiError::internal)?;
        listing
            .items
            .iter()
            .filter(|pod| selector.matches(|label| pod.meta.label(label)))
            .map(|pod| storage::parse(&pod.json))
            .collect()
    }

    /// What a budget asks for.
    async fn wanted(
        &self,
        budget: &Value,
        namespace: &str,
        pods: &[Value],
    ) -> std::result::Result<Wanted, String> {
        let rule = Rule::of(budget);
        let mut scale = 0;
        if rule.needs_scale() {
            let scales = Scales { server: &self.server, client: &self.client };
            let total = scales.total(namespace, pods).await?;
            if !total.all_managed {
                let message = notes::unmanaged(budget);
                self.recorder.tell(budget, Warning, "UnmanagedPods", &message).await;
            }
            scale = total.scale;
        }
        rule.wanted(i64::try_from(pods.len()).unwrap_or(i64::MAX), scale)
    }

    /// Writes a status, unless the budget changed since it was read.
    async fn write(&self, key: &Key, mut budget: Value, status: Value) -> Result<()> {
        object::set(&mut budget, &["status"], status);
        let path = format!(
            "/apis/policy/v1/namespaces/{}/poddisruptionbudgets/{}/status",
            key.namespace, key.name
        );
        match self.client.put(&path, &budget).await {
            Err(error) if error.reason() != "NotFound" => Err(error),
            _ => Ok(()),
        }
    }
}
