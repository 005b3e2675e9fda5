//! Asking admission webhooks about an object.

use fleetwright_kschema::scale as paths;
use serde_json::{Value, json};

use super::Call;
use crate::{
    admission::{Attributes, Equivalent, GroupVersionResource, Hooks},
    convert,
    gvk::GroupVersionKind,
    object,
    options::{FieldValidation, WriteOptions},
    registry::Resource,
    request::Operation,
    status::{ApiError, Result},
};

impl Call {
    pub(crate) async fn call_mutating_webhooks(
        &mut self,
        operation: Operation,
        value: &mut Value,
        old: Option<&Value>,
        options: &WriteOptions,
    ) -> Result<()> {
        if !self.server.admission().mutates() {
            return Ok(());
        }
        let shown = self.shown_options(operation, options);
        let mut warnings = std::mem::take(&mut self.warnings);
        let question = Question { operation, options: &shown, dry_run: options.dry_run };
        let result = if self.is_scale() {
            self.mutate_scale(&question, value, old, &mut warnings).await
        } else {
            let resource = resource_name(&self.resource);
            let attributes = self.attributes(&question, &self.resource.gvk, &resource, old);
            let admission = self.server.admission();
            admission.mutate(&attributes, Some(value), &OfCall(self), &mut warnings).await
        };
        self.warnings = warnings;
        result
    }

    pub(crate) async fn call_validating_webhooks(
        &mut self,
        operation: Operation,
        new: Option<&Value>,
        old: Option<&Value>,
        dry_run: bool,
        options: impl FnOnce(&Self) -> Value,
    ) -> Result<()> {
        let admission = self.server.admission();
        let asked = admission.validates() || operation == Operation::Delete && admission.mutates();
        if !asked {
            return Ok(());
        }
        let options = options(self);
        let mut warnings = std::mem::take(&mut self.warnings);
        let question = Question { operation, options: &options, dry_run };
        let result = self.validate(&question, new, old, &mut warnings).await;
        self.warnings = warnings;
        result
    }

    /// What may change or refuse something that is given to a subresource and not stored: an
    /// eviction, a binding, a request for a token.
    pub(crate) async fn admit_given(
        &mut self,
        kind: &GroupVersionKind,
        given: &mut Value,
        options: &WriteOptions,
    ) -> Result<()> {
        self.check_namespace(object::name(given))?;
        object::set(given, &["apiVersion"], kind.group_version().to_string());
        object::set(given, &["kind"], &*kind.kind);
        self.ensure_namespace(given)?;
        self.restrict_node(Operation::Create, Some(given), None)?;
        let mut warnings = std::mem::take(&mut self.warnings);
        let shown = self.shown_options(Operation::Create, options);
        let question =
            Question { operation: Operation::Create, options: &shown, dry_run: options.dry_run };
        let resource = resource_name(&self.resource);
        let attributes = self.attributes(&question, kind, &resource, None);
        let admission = self.server.admission();
        let result = admission.mutate(&attributes, Some(given), &as_it_is, &mut warnings).await;
        self.warnings = warnings;
        result
    }

    /// What may refuse it when it is known to be valid. Whatever is written after this was
    /// admitted with it.
    pub(crate) async fn review_given(
        &mut self,
        kind: &GroupVersionKind,
        given: &Value,
        options: &WriteOptions,
    ) -> Result<()> {
        let mut warnings = std::mem::take(&mut self.warnings);
        let shown = self.shown_options(Operation::Create, options);
        let question =
            Question { operation: Operation::Create, options: &shown, dry_run: options.dry_run };
        let resource = resource_name(&self.resource);
        let attributes = self.attributes(&question, kind, &resource, None);
        let admission = self.server.admission();
        let result = admission.validate(&attributes, Some(given), &as_it_is, &mut warnings).await;
        self.warnings = warnings;
        self.admitted = true;
        result
    }

    /// The options of a write as webhooks see them.
    pub(crate) fn shown_options(&self, operation: Operation, options: &WriteOptions) -> Value {
        let kind = match operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
        };
        let mut shown = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        if options.dry_run {
            shown["dryRun"] = json!(["All"]);
        }
        if !options.field_manager.is_empty() {
            shown["fieldManager"] = options.field_manager.clone().into();
        }
        // How strictly fields are validated is shown only if the client said so.
        let asked = self.query.text("fieldValidation");
        if !asked.is_empty() {
            object::set(&mut shown, &["fieldValidation"], asked);
        }
        shown
    }

    async fn validate(
        &self,
        question: &Question<'_>,
        new: Option<&Value>,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let resource = resource_name(&self.resource);
        let admission = self.server.admission();
        if self.is_scale() {
            let (new, old) = (self.maybe_scale(new)?, self.maybe_scale(old)?);
            let kind = scale_kind();
            let attributes = self.attributes(question, &kind, &resource, old.as_ref());
            return admission.validate(&attributes, new.as_ref(), &OfScale(self), warnings).await;
        }
        let attributes = self.attributes(question, &self.resource.gvk, &resource, old);
        // Nothing is there to change in a deletion, but mutating webhooks may refuse one.
        if question.operation == Operation::Delete {
            admission.mutate(&attributes, None, &OfCall(self), warnings).await?;
        }
        admission.validate(&attributes, new, &OfCall(self), warnings).await
    }

    /// Webhooks for `scale` see a Scale, and change the number in it.
    async fn mutate_scale(
        &self,
        question: &Question<'_>,
        value: &mut Value,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let old = self.maybe_scale(old)?;
        let before = self.scale_of(value)?;
        let mut scale = before.clone();
        let (kind, resource) = (scale_kind(), resource_name(&self.resource));
        let attributes = self.attributes(question, &kind, &resource, old.as_ref());
        let admission = self.server.admission();
        admission.mutate(&attributes, Some(&mut scale), &OfScale(self), warnings).await?;
        let replicas = |scale: &Value| object::integer(scale, &["spec", "replicas"]).unwrap_or(0);
        if replicas(&scale) != replicas(&before)
            && let Some(place) = &self.resource.scale
        {
            paths::set(value, &place.spec_replicas, replicas(&scale).into())
                .map_err(ApiError::internal)?;
        }
        Ok(())
    }

    fn is_scale(&self) -> bool {
        self.context.info.subresource == "scale"
    }

    fn maybe_scale(&self, value: Option<&Value>) -> Result<Option<Value>> {
        value.map(|value| self.scale_of(value)).transpose()
    }

    fn attributes<'a>(
        &'a self,
        question: &'a Question<'a>,
        kind: &'a GroupVersionKind,
        resource: &'a GroupVersionResource,
        old: Option<&'a Value>,
    ) -> Attributes<'a> {
        let info = &self.context.info;
        Attributes {
            user: &self.context.user,
            operation: question.operation,
            kind,
            resource,
            subresource: &info.subresource,
            name: &info.name,
            namespace: &info.namespace,
            old_object: old,
            options: question.options,
            dry_run: question.dry_run,
        }
    }
}

/// What is about to happen, and how the client wants it done.
struct Question<'a> {
    operation: Operation,
    options: &'a Value,
    dry_run: bool,
}

fn resource_name(resource: &Resource) -> GroupVersionResource {
    GroupVersionResource {
        group: resource.gvk.group.clone(),
        version: resource.gvk.version.clone(),
        resource: resource.plural.clone(),
    }
}

fn scale_kind() -> GroupVersionKind {
    GroupVersionKind::new("autoscaling", "v1", "Scale")
}

/// What is not stored has one version, and no defaults.
#[expect(clippy::unnecessary_wraps, reason = "the shape of a hook")]
fn as_it_is(_: &mut Value) -> std::result::Result<(), String> {
    Ok(())
}

/// Whatever is stored in the same place is another version of the same thing.
fn equivalents(call: &Call) -> Vec<Equivalent> {
    let own = &call.resource;
    let registry = call.server.registry();
    registry
        .all()
        .iter()
        .filter(|other| other.storage == own.storage)
        .map(|other| Equivalent { resource: resource_name(other), kind: other.gvk.clone() })
        .collect()
}

/// What webhooks need to know about the kind of a call.
struct OfCall<'a>(&'a Call);

impl Hooks for OfCall<'_> {
    fn normalize(&self, object: &mut Value) -> std::result::Result<(), String> {
        self.0.shape(object, FieldValidation::Ignore).map(drop)
    }

    fn equivalents(&self) -> Vec<Equivalent> {
        equivalents(self.0)
    }

    fn convert(
        &self,
        value: &Value,
        kind: &GroupVersionKind,
    ) -> std::result::Result<Value, String> {
        let registry = self.0.server.registry();
        let api_version = object::text(value, &["apiVersion"]).to_owned();
        let find = |kind: &GroupVersionKind| {
            registry.find_kind(&kind.group, &kind.version, &kind.kind).ok_or_else(|| {
                format!("no kind {:?} in version {}", kind.kind, kind.group_version())
            })
        };
        let own = if api_version == self.0.resource.group_version().to_string() {
            self.0.resource.clone()
        } else {
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            find(&GroupVersionKind::new(group, version, object::text(value, &["kind"])))?
        };
        let mut value = value.clone();
        convert::to_stored(&own, &mut value);
        convert::from_stored(&*find(kind)?, &mut value);
        Ok(value)
    }
}

/// A Scale is the same in every version of what is scaled.
struct OfScale<'a>(&'a Call);

impl Hooks for OfScale<'_> {
    fn normalize(&self, _: &mut Value) -> std::result::Result<(), String> {
        Ok(())
    }

    fn equivalents(&self) -> Vec<Equivalent> {
        let mut all = equivalents(self.0);
        for other in &mut all {
            other.kind = scale_kind();
        }
        all
    }
}
