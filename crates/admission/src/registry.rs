//! Which rule answers where, and the configurations that make the API server ask.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::{Operation, Rule};

/// When a webhook is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// First, and it may change the object.
    Mutate,
    /// Last, and it may only look.
    Validate,
}

/// What happens when a webhook cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request goes on.
    Ignore,
    /// The request is refused.
    Fail,
}

impl FailurePolicy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Fail => "Fail",
        }
    }
}

/// A rule at a path, for some resources.
#[derive(Clone)]
pub struct Webhook {
    /// Its full name, which users see in refusals.
    pub name: &'static str,
    /// Where it answers.
    pub path: &'static str,
    /// When it is asked.
    pub stage: Stage,
    /// For which operations.
    pub operations: &'static [Operation],
    /// For which group.
    pub group: &'static str,
    /// For which version.
    pub version: &'static str,
    /// For which resources.
    pub resources: &'static [&'static str],
    /// What happens when it cannot be asked.
    pub failure_policy: FailurePolicy,
    /// What answers.
    pub rule: Arc<dyn Rule>,
}

/// Where the API server finds the webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Behind a Service of the cluster, or in this process under its name.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
    /// At a URL, `https://host:port`; paths are added.
    Url(String),
}

/// Every webhook of one configuration.
#[derive(Clone, Default)]
pub struct Registry {
    webhooks: BTreeMap<&'static str, Webhook>,
}

impl Registry {
    /// A registry of these. Of two at one path the later stays.
    pub fn new(webhooks: impl IntoIterator<Item = Webhook>) -> Self {
        Self { webhooks: webhooks.into_iter().map(|webhook| (webhook.path, webhook)).collect() }
    }

    /// The webhook at a path.
    pub fn at(&self, path: &str) -> Option<&Webhook> {
        self.webhooks.get(path)
    }

    /// The configuration that has the API server ask before it validates.
    pub fn mutating(
        &self,
        name: &str,
        endpoint: &Endpoint,
        ca_bundle: &[u8],
    ) -> MutatingWebhookConfiguration {
        let webhooks = self.of(Stage::Mutate).map(|webhook| MutatingWebhook {
            name: webhook.name.to_owned(),
            client_config: client_config(webhook, endpoint, ca_bundle),
            admission_review_versions: vec!["v1".to_owned()],
            side_effects: "None".to_owned(),
            failure_policy: Some(webhook.failure_policy.as_str().to_owned()),
            match_policy: Some("Equivalent".to_owned()),
            rules: Some(vec![rule_of(webhook)]),
            ..MutatingWebhook::default()
        });
        MutatingWebhookConfiguration { metadata: named(name), webhooks: Some(webhooks.collect()) }
    }

    /// The configuration that has the API server ask last.
    pub fn validating(
        &self,
        name: &str,
        endpoint: &Endpoint,
        ca_bundle: &[u8],
    ) -> ValidatingWebhookConfiguration {
        let webhooks = self.of(Stage::Validate).map(|webhook| ValidatingWebhook {
            name: webhook.name.to_owned(),
            client_config: client_config(webhook, endpoint, ca_bundle),
            admission_review_versions: vec!["v1".to_owned()],
            side_effects: "None".to_owned(),
            failure_policy: Some(webhook.failure_policy.as_str().to_owned()),
            match_policy: Some("Equivalent".to_owned()),
            rules: Some(vec![rule_of(webhook)]),
            ..ValidatingWebhook::default()
        });
        ValidatingWebhookConfiguration { metadata: named(name), webhooks: Some(webhooks.collect()) }
    }

    fn of(&self, stage: Stage) -> impl Iterator<Item = &Webhook> {
        self.webhooks.values().filter(move |webhook| webhook.stage == stage)
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn client_config(webhook: &Webhook, endpoint: &Endpoint, ca_bundle: &[u8]) -> WebhookClientConfig {
    let ca_bundle = (!ca_bundle.is_empty()).then(|| ByteString(ca_bundle.to_vec()));
    match endpoint {
        Endpoint::Service { namespace, name, port } => WebhookClientConfig {
            ca_bundle,
            service: Some(ServiceReference {
                namespace: namespace.clone(),
                name: name.clone(),
                path: Some(webhook.path.to_owned()),
                port: Some(i32::from(*port)),
            }),
            url: None,
        },
        Endpoint::Url(base) => WebhookClientConfig {
            ca_bundle,
            service: None,
            url: Some(format!("{}{}", base.trim_end_matches('/'), webhook.path)),
        },
    }
}

fn rule_of(webhook: &Webhook) -> RuleWithOperations {
    let texts = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    RuleWithOperations {
        api_groups: texts(&[webhook.group]),
        api_versions: texts(&[webhook.version]),
        operations: Some(
            webhook.operations.iter().map(|operation| operation.as_str().to_owned()).collect(),
        ),
        resources: texts(webhook.resources),
        scope: Some("*".to_owned()),
    }
}
