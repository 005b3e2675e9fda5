//! Admission: the rules that come from other objects (namespaces, roles, webhooks).

use fleetwright_kstore::Key;
use serde_json::Value;

use super::{Call, create::namespace_terminating};
use crate::{
    auth::{node::restriction, rbac::escalation},
    gvk::GroupResource,
    object,
    options::WriteOptions,
    request::Operation,
    status::{ApiError, Result},
};

impl Call {
    /// What may change or refuse an object before it is validated.
    pub(crate) async fn admit(
        &mut self,
        operation: Operation,
        value: &mut Value,
        old: Option<&Value>,
        options: &WriteOptions,
    ) -> Result<()> {
        if self.admitted {
            return Ok(());
        }
        if operation == Operation::Create {
            self.check_namespace(object::name(value))?;
        }
        self.restrict_node(operation, Some(value), old)?;
        self.call_mutating_webhooks(operation, value, old, options).await
    }

    /// What may refuse an object that is otherwise ready to be written.
    pub(crate) async fn review(
        &mut self,
        operation: Operation,
        new: Option<&Value>,
        old: Option<&Value>,
        options: &WriteOptions,
    ) -> Result<()> {
        if self.admitted {
            return Ok(());
        }
        if let Some(new) = new {
            let access = self.server.access();
            escalation::check(
                access.rbac(),
                access.authorizer(),
                &self.context.user,
                &self.context.info,
                new,
                old,
            )?;
        }
        let shown = |call: &Self| call.shown_options(operation, options);
        self.call_validating_webhooks(operation, new, old, options.dry_run, shown).await
    }

    /// Refuses what a node may not write.
    pub(crate) fn restrict_node(
        &self,
        operation: Operation,
        new: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<()> {
        let info = &self.context.info;
        let name = if info.name.is_empty() { new.or(old).map(object::name) } else { None };
        let change = restriction::Change {
            user: &self.context.user,
            operation,
            resource: &self.resource.group_resource(),
            subresource: &info.subresource,
            namespace: &info.namespace,
            name: name.unwrap_or(&info.name),
            object: new,
            old,
        };
        let access = self.server.access();
        restriction::check(&change, &*access.objects(), access.authorizer())
    }

    /// A namespace that does not exist or is going away takes no new objects.
    pub(crate) fn check_namespace(&self, name: &str) -> Result<()> {
        if !self.resource.namespaced {
            return Ok(());
        }
        let namespace = self.namespace();
        let key = Key::new("/namespaces", "", namespace);
        let Some(stored) = self.server.storage().get(&key) else {
            return Err(ApiError::not_found(&GroupResource::new("", "namespaces"), namespace));
        };
        if stored.meta.is_terminating() {
            return Err(namespace_terminating(self, name, namespace));
        }
        Ok(())
    }

    /// An update of an object that does not exist creates it, which takes the right to create.
    pub(crate) fn authorize_create(&self) -> Result<()> {
        let mut info = (*self.context.info).clone();
        "create".clone_into(&mut info.verb);
        self.server.access().authorize(&self.context.user, &info)
    }
}
