//! Admission webhooks: other programs that change or refuse objects before they are stored.
//!
//! Which webhooks are asked is decided by [`configuration`] and [`matching`], what they are sent
//! and what their answers mean by [`review`]; [`Admission`] calls them, one after the other where
//! they may change the object ([`Admission::mutate`]), all at once where they may only refuse it
//! ([`Admission::validate`]). How a webhook is reached is a [`WebhookTransport`]: over HTTPS, or
//! in this process, which needs neither sockets nor real time.

mod attributes;
mod call;
mod condition;
pub mod configuration;
mod matching;
mod mutate;
mod patch;
pub mod review;
pub mod transport;
mod validate;

use std::sync::Arc;

use fleetwright_clock::Random;

use crate::auth::ObjectSource;
use configuration::Configurations;

pub use attributes::{Attributes, Equivalent, GroupVersionResource, Hooks};
pub(crate) use condition::compilation_error;
pub use transport::{Https, InProcess, WebhookTransport};

/// Calls the admission webhooks that are configured.
pub struct Admission {
    source: Arc<dyn ObjectSource>,
    transport: Arc<dyn WebhookTransport>,
    random: Random,
    mutating: Configurations,
    validating: Configurations,
}

impl Admission {
    /// Webhooks configured in `source` and reached over `transport`.
    pub fn new(
        source: Arc<dyn ObjectSource>,
        transport: Arc<dyn WebhookTransport>,
        random: Random,
    ) -> Self {
        Self {
            source,
            transport,
            random,
            mutating: Configurations::new(configuration::MUTATING),
            validating: Configurations::new(configuration::VALIDATING),
        }
    }

    /// Whether any mutating webhook is configured.
    pub fn mutates(&self) -> bool {
        !self.mutating.webhooks(&*self.source).is_empty()
    }

    /// Whether any validating webhook is configured.
    pub fn validates(&self) -> bool {
        !self.validating.webhooks(&*self.source).is_empty()
    }
}

#[cfg(test)]
mod tests;
