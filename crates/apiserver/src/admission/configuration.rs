//! The webhooks that are configured.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use parking_lot::RwLock;
use serde_json::Value;

use super::{condition::Conditions, transport::Target};
use crate::{auth::ObjectSource, object, selector::LabelSelector};

/// Mutating webhooks, as an [`ObjectSource`] names them.
pub const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
/// Validating webhooks.
pub const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

/// How long a webhook may take, if its configuration does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// A webhook, ready to be matched and called.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one setting of the configuration")]
pub struct Webhook {
    /// Its name.
    pub name: String,
    pub(super) rules: Vec<Rule>,
    pub(super) namespace_selector: Result<LabelSelector, String>,
    pub(super) object_selector: Result<LabelSelector, String>,
    pub(super) conditions: Conditions,
    /// Whether other versions of a resource match rules too.
    pub(super) matches_equivalents: bool,
    /// Whether a webhook that fails is passed over.
    pub(super) ignores_failure: bool,
    pub(super) has_side_effects: bool,
    pub(super) timeout: Duration,
    pub(super) review_versions: Vec<String>,
    /// Whether it wants to see the object again after others changed it.
    pub(super) reinvoke_if_needed: bool,
    pub(super) target: Result<Target, String>,
}

/// One of a webhook's rules.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) operations: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) versions: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) scope: Scope,
}

/// Whether a rule is about namespaced objects, others, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    Namespaced,
    Cluster,
    /// A scope that does not exist matches nothing.
    Unknown,
}

impl Webhook {
    fn parse(webhook: &Value) -> Self {
        let text = |key| object::text(webhook, &[key]);
        let selector = |key| match object::get(webhook, &[key]).filter(|s| !s.is_null()) {
            None => Ok(LabelSelector::default()),
            Some(selector) => LabelSelector::from_object(Some(selector))
                .ok_or_else(|| format!("{key} has an operator that is not valid")),
        };
        let ignores_failure = text("failurePolicy") == "Ignore";
        Self {
            name: text("name").to_owned(),
            rules: object::list(webhook, &["rules"]).iter().map(Rule::parse).collect(),
            namespace_selector: selector("namespaceSelector"),
            object_selector: selector("objectSelector"),
            conditions: Conditions::compile(object::list(webhook, &["matchConditions"])),
            matches_equivalents: text("matchPolicy") != "Exact",
            ignores_failure,
            has_side_effects: !matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            timeout: object::integer(webhook, &["timeoutSeconds"])
                .and_then(|seconds| u64::try_from(seconds).ok())
                .map_or(DEFAULT_TIMEOUT, Duration::from_secs),
            review_versions: strings(webhook, "admissionReviewVersions"),
            reinvoke_if_needed: text("reinvocationPolicy") == "IfNeeded",
            target: target(webhook.get("clientConfig").unwrap_or(&Value::Null)),
        }
    }
}

impl Rule {
    fn parse(rule: &Value) -> Self {
        Self {
            operations: strings(rule, "operations"),
            groups: strings(rule, "apiGroups"),
            versions: strings(rule, "apiVersions"),
            resources: strings(rule, "resources"),
            scope: match object::text(rule, &["scope"]) {
                "" | "*" => Scope::All,
                "Namespaced" => Scope::Namespaced,
                "Cluster" => Scope::Cluster,
                _ => Scope::Unknown,
            },
        }
    }
}

fn strings(value: &Value, key: &str) -> Vec<String> {
    object::list(value, &[key]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn target(config: &Value) -> Result<Target, String> {
    let bundle = object::text(config, &["caBundle"]);
    let ca_bundle: Arc<[u8]> =
        BASE64.decode(bundle).map_err(|error| format!("invalid caBundle: {error}"))?.into();
    if let Some(service) = object::get(config, &["service"]).filter(|s| !s.is_null()) {
        let text = |key| object::text(service, &[key]).to_owned();
        let port = object::integer(service, &["port"]).and_then(|port| u16::try_from(port).ok());
        return Ok(Target::Service {
            namespace: text("namespace"),
            name: text("name"),
            port: port.filter(|port| *port != 0).unwrap_or(443),
            path: text("path"),
            ca_bundle,
        });
    }
    match object::text(config, &["url"]) {
        "" => Err("webhook configuration must have either service or URL".to_owned()),
        url => Ok(Target::Url { url: url.to_owned(), ca_bundle }),
    }
}

/// The webhooks of one kind, compiled again when the stored configurations change.
pub(super) struct Configurations {
    resource: &'static str,
    compiled: RwLock<Option<(u64, Arc<Vec<Webhook>>)>>,
}

impl Configurations {
    pub(super) fn new(resource: &'static str) -> Self {
        Self { resource, compiled: RwLock::new(None) }
    }

    /// The webhooks in the order in which they are called: by the name of their configuration,
    /// then as written there.
    pub(super) fn webhooks(&self, source: &dyn ObjectSource) -> Arc<Vec<Webhook>> {
        let version = source.version(self.resource);
        if let Some((known, webhooks)) = &*self.compiled.read()
            && *known == version
        {
            return Arc::clone(webhooks);
        }
        let mut configurations = source.list(self.resource, None);
        configurations.sort_by(|a, b| object::name(a).cmp(object::name(b)));
        let webhooks: Vec<Webhook> = configurations
            .iter()
            .flat_map(|configuration| object::list(configuration, &["webhooks"]))
            .map(Webhook::parse)
            .collect();
        let webhooks = Arc::new(webhooks);
        *self.compiled.write() = Some((version, Arc::clone(&webhooks)));
        webhooks
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use serde_json::json;

    use super::*;
    use crate::auth::source::memory::MemorySource;

    #[test]
    fn webhooks_are_ordered_and_compiled_once() {
        let source = MemorySource::default();
        let configuration = |name: &str, hooks: &[&str]| {
            let hooks: Vec<Value> = hooks.iter().map(|hook| json!({"name": hook})).collect();
            json!({"metadata": {"name": name}, "webhooks": hooks})
        };
        source.put(MUTATING, configuration("b", &["3"]));
        source.put(MUTATING, configuration("a", &["1", "2"]));
        let all = Configurations::new(MUTATING);
        let names = || -> Vec<String> {
            all.webhooks(&source).iter().map(|webhook| webhook.name.clone()).collect()
        };
        assert_eq!(names(), ["1", "2", "3"]);
        assert_eq!(names(), ["1", "2", "3"]);
        assert_eq!(source.lists.load(Ordering::Relaxed), 1);
        source.delete(MUTATING, "", "a");
        assert_eq!(names(), ["3"]);
    }

    #[test]
    fn targets_are_read() {
        let of = |config: Value| target(&config);
        assert_eq!(
            of(json!({"service": {"namespace": "ns", "name": "svc", "path": "/p"}})),
            Ok(Target::Service {
                namespace: "ns".into(),
                name: "svc".into(),
                port: 443,
                path: "/p".into(),
                ca_bundle: Arc::from([]),
            })
        );
        assert!(matches!(
            of(json!({"url": "https://x/y", "caBundle": "YQ=="})),
            Ok(Target::Url { .. })
        ));
        assert_eq!(
            of(json!({})),
            Err("webhook configuration must have either service or URL".into())
        );
    }
}
