//! `pods/eviction`: a deletion that disruption budgets can refuse.

use fleetwright_kschema::builtin::{TypeMeta, body};
use fleetwright_kstore::{At, Scope};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Call, Part, Reply, delete::Deletion, modify::Modification};
use crate::{
    gvk::{GroupResource, GroupVersionKind},
    internal::InternalClient,
    object,
    options::{DeleteOptions, WriteOptions},
    selector::LabelSelector,
    status::{ApiError, Cause, Result},
};

/// More evictions than a budget remembers.
const MAX_DISRUPTED_PODS: usize = 2000;
const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// What the budgets of a pod say to its eviction.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// The pod is not healthy and its budget is: it may go if it does not change meanwhile.
    IfUnchanged,
    /// The budget must be charged first.
    Charge,
}

/// Marks a pod as the target of an eviction before it is deleted.
struct MarkDisrupted {
    uid: Option<String>,
    resource_version: Option<String>,
    now: String,
}

impl Modification for MarkDisrupted {
    fn apply(&self, call: &mut Call, current: Option<&Value>) -> Result<Value> {
        let pod = current.cloned().unwrap_or_default();
        call.check_preconditions(
            &pod,
            &DeleteOptions {
                uid: self.uid.clone(),
                resource_version: self.resource_version.clone(),
                ..DeleteOptions::default()
            },
        )?;
        let mut pod = pod;
        set_condition(&mut pod, &self.now);
        Ok(pod)
    }
}

impl Call {
    pub(crate) async fn handle_eviction(&mut self, method: &Method) -> Result<Reply> {
        if method != Method::POST {
            return Err(ApiError::method_not_allowed());
        }
        let write = WriteOptions::parse(&self.query, "CreateOptions")?;
        let mut eviction = self.eviction_body()?;
        let kind = GroupVersionKind::new("policy", "v1", "Eviction");
        self.admit_given(&kind, &mut eviction, &write).await?;
        let name = self.context.info.name.clone();
        if object::name(&eviction) != name {
            return Err(ApiError::bad_request(
                "name in URL does not match name in Eviction object",
            ));
        }
        self.review_given(&kind, &eviction, &write).await?;
        let mut options = DeleteOptions::parse(
            Some(eviction.get("deleteOptions").unwrap_or(&Value::Null)),
            &self.query,
        )?;
        options.dry_run |= write.dry_run;
        let pod = self.read(&self.existing()?)?;
        let unset = options.resource_version.is_none();
        if ignores_budgets(&pod) {
            if object::text(&pod, &["status", "phase"]) == "Pending" && unset {
                options.resource_version = Some(object::resource_version(&pod).to_owned());
            }
            return self.evict(options).await;
        }
        let budgets = self.budgets_of(&pod)?;
        let budget = match budgets.as_slice() {
            [] => return self.evict(options).await,
            [budget] => budget.clone(),
            _ => {
                return Err(ApiError::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "",
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                    None,
                ));
            }
        };
        match verdict(&pod, &budget) {
            Verdict::IfUnchanged => {
                options.resource_version = Some(object::resource_version(&pod).to_owned());
                let evicted = self.evict(options).await;
                return match evicted {
                    Err(error) if error.reason() == "Conflict" && unset => {
                        Err(still_processed(object::name(&budget)))
                    }
                    other => other,
                };
            }
            Verdict::Charge => self.charge(budget, &name, options.dry_run).await?,
        }
        self.evict(options).await
    }

    fn eviction_body(&self) -> Result<Value> {
        let value = self.read_loose().map_err(|error| {
            ApiError::bad_request(body::refusal("Eviction", None, error.message(), &self.body))
        })?;
        let meta = TypeMeta {
            api_version: object::text(&value, &["apiVersion"]).to_owned(),
            kind: object::text(&value, &["kind"]).to_owned(),
        };
        if !matches!(meta.kind.as_str(), "" | "Eviction") {
            let why = body::unknown_conversion(&meta, "policy/v1", "Eviction");
            return Err(ApiError::bad_request(body::refusal(
                "Eviction",
                Some(&meta),
                &why,
                &self.body,
            )));
        }
        match meta.api_version.as_str() {
            "" | "policy/v1" | "policy/v1beta1" => Ok(value),
            other => Err(ApiError::bad_request(format!(
                "the API version in the data ({other}) does not match the expected API version (policy/v1)"
            ))),
        }
    }

    /// The disruption budgets that select a pod.
    fn budgets_of(&self, pod: &Value) -> Result<Vec<Value>> {
        let scope = Scope::in_namespace("policy/poddisruptionbudgets", self.namespace());
        let listing =
            self.server.storage().list(&scope, At::Latest, None).map_err(ApiError::internal)?;
        let mut budgets = Vec::new();
        for stored in &listing.items {
            let budget = crate::storage::parse(&stored.json)?;
            let selector = LabelSelector::from_object(object::get(&budget, &["spec", "selector"]));
            if selector.is_some_and(|s| s.matches_object(pod)) {
                budgets.push(budget);
            }
        }
        Ok(budgets)
    }

    /// Takes one disruption from a budget, again if it changes meanwhile.
    async fn charge(&self, mut budget: Value, pod: &str, dry_run: bool) -> Result<()> {
        let client = InternalClient::new(&self.server, "kube-apiserver");
        let name = object::name(&budget).to_owned();
        let path =
            format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets/{name}", self.namespace());
        loop {
            charge(&mut budget, pod, &self.timestamp())?;
            if dry_run {
                return Ok(());
            }
            object::set(&mut budget, &["apiVersion"], "policy/v1");
            object::set(&mut budget, &["kind"], "PodDisruptionBudget");
            match client.put(&format!("{path}/status"), &budget).await {
                Ok(_) => return Ok(()),
                Err(error) if error.reason() == "Conflict" => budget = client.get(&path).await?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn evict(&mut self, mut options: DeleteOptions) -> Result<Reply> {
        if !options.dry_run {
            let mark = MarkDisrupted {
                uid: options.uid.clone(),
                resource_version: options.resource_version.clone(),
                now: self.timestamp(),
            };
            let (written, _) = self.modify(Part::Status, &WriteOptions::default(), &mark).await?;
            if options.resource_version.is_some() {
                let pod = self.shown(written)?;
                options.resource_version = Some(object::resource_version(&pod).to_owned());
            }
        }
        let stored = self.existing()?;
        match self.delete_object(stored, &options).await? {
            Deletion::Gone(_) | Deletion::Pending(_) => {}
        }
        Ok(Reply::json(
            StatusCode::CREATED,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        ))
    }
}

/// Pods that are over, not begun or going away are not counted by budgets.
fn ignores_budgets(pod: &Value) -> bool {
    matches!(object::text(pod, &["status", "phase"]), "Succeeded" | "Failed" | "Pending")
        || object::is_terminating(pod)
}

fn is_ready(pod: &Value) -> bool {
    object::list(pod, &["status", "conditions"]).iter().any(|condition| {
        object::text(condition, &["type"]) == "Ready"
            && object::text(condition, &["status"]) == "True"
    })
}

fn verdict(pod: &Value, budget: &Value) -> Verdict {
    if is_ready(pod) {
        return Verdict::Charge;
    }
    if object::text(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow" {
        return Verdict::IfUnchanged;
    }
    let number = |field: &str| object::integer(budget, &["status", field]).unwrap_or(0);
    let desired = number("desiredHealthy");
    if desired > 0 && number("currentHealthy") >= desired {
        return Verdict::IfUnchanged;
    }
    Verdict::Charge
}

fn budget_cause(message: String) -> Cause {
    Cause { reason: "DisruptionBudget".to_owned(), message, field: String::new() }
}

fn still_processed(name: &str) -> ApiError {
    ApiError::too_many_requests(REFUSAL, 10).with_cause(budget_cause(format!(
        "The disruption budget {name} is still being processed by the server."
    )))
}

/// Takes one disruption from a budget, or says why not.
fn charge(budget: &mut Value, pod: &str, now: &str) -> Result<()> {
    let name = object::name(budget).to_owned();
    let number = |field: &str| object::integer(budget, &["status", field]).unwrap_or(0);
    if number("observedGeneration") < object::generation(budget) {
        return Err(still_processed(&name));
    }
    let allowed = number("disruptionsAllowed");
    let resource = GroupResource::new("policy", "poddisruptionbudget");
    let forbidden = |why: &str, cause: &str| {
        ApiError::forbidden(&resource, &name, why).with_cause(budget_cause(format!(
            "The disruption budget {name} does not allow evicting pods currently: {cause}"
        )))
    };
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(forbidden(why, why));
    }
    let disrupted = object::get(budget, &["status", "disruptedPods"]).and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > MAX_DISRUPTED_PODS) {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            "too many pending evictions not confirmed by PDB controller",
        ));
    }
    if allowed == 0 {
        let message =
            refusal_cause(budget, &name, number("desiredHealthy"), number("currentHealthy"));
        return Err(ApiError::too_many_requests(REFUSAL, 0).with_cause(budget_cause(message)));
    }
    object::set(budget, &["status", "disruptionsAllowed"], allowed - 1);
    if allowed == 1 {
        set_disallowed(budget, now);
    }
    object::set(budget, &["status", "disruptedPods", pod], now);
    Ok(())
}

fn refusal_cause(budget: &Value, name: &str, desired: i64, current: i64) -> String {
    let condition = object::list(budget, &["status", "conditions"]).iter().find(|condition| {
        object::text(condition, &["type"]) == "DisruptionAllowed"
            && object::text(condition, &["status"]) == "False"
            && !object::text(condition, &["message"]).is_empty()
    });
    let text = |field: &str| condition.map_or("", |c| object::text(c, &[field]));
    if text("reason") == "SyncFailed" {
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            text("message")
        )
    } else if current <= desired {
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    } else if condition.is_some() {
        format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            text("reason"),
            text("message")
        )
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

fn set_disallowed(budget: &mut Value, now: &str) {
    let generation = object::generation(budget);
    let condition = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
        "lastTransitionTime": now,
    });
    put_condition(budget, condition);
}

fn set_condition(pod: &mut Value, now: &str) {
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": null,
        "lastTransitionTime": now,
    });
    put_condition(pod, condition);
}

/// Adds or replaces a condition; an unchanged status keeps its time of transition.
fn put_condition(object: &mut Value, mut condition: Value) {
    let mut conditions = object::list(object, &["status", "conditions"]).to_vec();
    let existing = conditions.iter_mut().find(|c| c["type"] == condition["type"]);
    match existing {
        Some(existing) => {
            if existing["status"] == condition["status"] {
                condition["lastTransitionTime"] = existing["lastTransitionTime"].clone();
            }
            *existing = condition;
        }
        None => conditions.push(condition),
    }
    object::set(object, &["status", "conditions"], conditions);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(allowed: i64, observed: i64) -> Value {
        json!({
            "metadata": {"name": "b", "generation": 1},
            "status": {
                "observedGeneration": observed,
                "disruptionsAllowed": allowed,
                "desiredHealthy": 2,
                "currentHealthy": 2,
            },
        })
    }

    #[test]
    fn a_budget_is_charged_once() {
        let mut budget = budget(1, 1);
        charge(&mut budget, "p", "t").unwrap();
        assert_eq!(budget["status"]["disruptionsAllowed"], 0);
        assert_eq!(budget["status"]["disruptedPods"]["p"], "t");
        assert_eq!(budget["status"]["conditions"][0]["reason"], "InsufficientPods");
        let error = charge(&mut budget, "q", "t").unwrap_err();
        assert_eq!(error.code(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(
            error.to_value()["details"]["causes"][0]["message"],
            "The disruption budget b needs 2 healthy pods and has 2 currently"
        );
    }

    #[test]
    fn a_budget_that_is_not_observed_refuses() {
        let error = charge(&mut budget(1, 0), "p", "t").unwrap_err();
        assert_eq!(error.retry_after_seconds(), Some(10));
    }

    #[test]
    fn unhealthy_pods_may_go_when_the_budget_is_healthy() {
        let sick = json!({"status": {"phase": "Running"}});
        let well = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(verdict(&sick, &budget(0, 1)), Verdict::IfUnchanged);
        assert_eq!(verdict(&well, &budget(0, 1)), Verdict::Charge);
        let mut strict = budget(0, 1);
        strict["status"]["currentHealthy"] = 1.into();
        assert_eq!(verdict(&sick, &strict), Verdict::Charge);
        strict["spec"] = json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"});
        assert_eq!(verdict(&sick, &strict), Verdict::IfUnchanged);
    }
}
