//! What pods ask for and nodes have.

use std::collections::BTreeMap;

use fleetwright_lifecycle::quantity::{milli, whole};
use k8s_openapi::{
    api::core::v1::{Container, Pod, PodSpec},
    apimachinery::pkg::api::resource::Quantity,
};

/// The amounts of a Kubernetes object.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

pub(crate) const CPU: &str = "cpu";
pub(crate) const MEMORY: &str = "memory";
pub(crate) const STORAGE: &str = "ephemeral-storage";
pub(crate) const PODS: &str = "pods";

/// What the scheduler assumes for its scores when a container asks for nothing.
const UNSAID_CPU: i64 = 100;
const UNSAID_MEMORY: i64 = 200 * 1024 * 1024;

/// Amounts of resources by name: processors in thousandths, everything else in units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources(BTreeMap<String, i64>);

impl Resources {
    pub(crate) fn of(amounts: Option<&Amounts>) -> Self {
        let amounts = amounts.into_iter().flatten();
        Self(amounts.map(|(name, amount)| (name.clone(), value(name, amount))).collect())
    }

    pub(crate) fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let rest = self.0.entry(name.clone()).or_default();
            *rest = rest.saturating_sub(*amount);
        }
    }

    /// Names and amounts, in the order in which Kubernetes reports what is missing.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        let rank = |name: &str| [CPU, MEMORY, STORAGE].iter().position(|known| *known == name);
        let mut all: Vec<_> =
            self.0.iter().map(|(name, amount)| (name.as_str(), *amount)).collect();
        all.sort_by_key(|(name, _)| rank(name).unwrap_or(usize::MAX));
        all.into_iter()
    }

    fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let most = self.0.entry(name.clone()).or_default();
            *most = (*most).max(*amount);
        }
    }
}

fn value(name: &str, amount: &Quantity) -> i64 {
    // What is not an amount is refused by the server.
    let found = if name == CPU { milli(&amount.0) } else { whole(&amount.0) };
    found.unwrap_or_default()
}

/// What a pod asks for: its containers together, or more if an init container needs more. Init
/// containers that go on running count with the containers.
pub(crate) fn requests(pod: &Pod) -> Resources {
    summed(pod, asked)
}

/// The same for scores, where a container that asks for nothing counts for something.
pub(crate) fn weights(pod: &Pod) -> (i64, i64) {
    let total = summed(pod, |container| {
        let mut asked = asked(container);
        asked.0.entry(CPU.to_owned()).or_insert(UNSAID_CPU);
        asked.0.entry(MEMORY.to_owned()).or_insert(UNSAID_MEMORY);
        asked
    });
    (total.get(CPU), total.get(MEMORY))
}

fn asked(container: &Container) -> Resources {
    Resources::of(container.resources.as_ref().and_then(|needs| needs.requests.as_ref()))
}

fn summed(pod: &Pod, of: impl Fn(&Container) -> Resources) -> Resources {
    let Some(spec) = &pod.spec else { return Resources::default() };
    let mut total = Resources::default();
    for container in &spec.containers {
        total.add(&of(container));
    }
    let mut sidecars = Resources::default();
    let mut most = Resources::default();
    for container in init_containers(spec) {
        let needs = of(container);
        if is_sidecar(container) {
            total.add(&needs);
            sidecars.add(&needs);
            most.raise_to(&sidecars);
        } else {
            let mut needs = needs;
            needs.add(&sidecars);
            most.raise_to(&needs);
        }
    }
    total.raise_to(&most);
    total.add(&Resources::of(spec.overhead.as_ref()));
    total
}

pub(crate) fn init_containers(spec: &PodSpec) -> &[Container] {
    spec.init_containers.as_deref().unwrap_or_default()
}

/// Whether an init container goes on running beside the others.
pub(crate) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_pod_asks_for() {
        let needs = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let pod: Pod = serde_json::from_value(json!({"spec": {
            "containers": [
                {"name": "a", "resources": needs("100m")},
                {"name": "b", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}}},
                {"name": "c"},
            ],
            "initContainers": [
                {"name": "sidecar", "restartPolicy": "Always", "resources": needs("200m")},
                {"name": "init", "resources": needs("5")},
            ],
            "overhead": {"memory": "1Mi"},
        }}))
        .unwrap();
        let all: Vec<_> = requests(&pod).iter().map(|(n, v)| (n.to_owned(), v)).collect();
        let expected = [("cpu", 5200), ("memory", 1_048_576), ("nvidia.com/gpu", 2)];
        assert_eq!(all, expected.map(|(n, v)| (n.to_owned(), v)));
        assert_eq!(weights(&pod).0, 5200, "an init container decides");
        assert_eq!(weights(&pod).1, 4 * UNSAID_MEMORY + 1_048_576);
    }
}
