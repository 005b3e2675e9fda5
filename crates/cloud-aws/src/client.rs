//! Calls of one account in one region.

use std::sync::Arc;

use fleetwright_cloud::{
    CloudError,
    retry::{CallKind, Caller},
};

use crate::{
    credentials::KeyRing,
    errors,
    model::{Kind, Operation},
    wire::Wire,
};

/// Makes calls: under the account's limiter, signed, and again where that may help.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) wire: Wire,
    pub(crate) region: String,
    pub(crate) keys: Arc<KeyRing>,
    pub(crate) caller: Caller,
}

impl Client {
    pub(crate) async fn call<O: Operation>(&self, request: &O) -> Result<O::Output, CloudError> {
        let kind = match O::KIND {
            Kind::Read => CallKind::READ,
            Kind::Repeatable => CallKind::REPEATABLE_WRITE,
            Kind::Write => CallKind::WRITE,
        };
        let answer = self
            .caller
            .call(kind, || async {
                let keys = self.keys.keys(&self.wire, &self.region).await?;
                self.wire.exchange(&self.region, Some(&keys), request).await
            })
            .await;
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => {
                if errors::keys_are_bad(&error.code) {
                    self.keys.forget().await;
                }
                tracing::debug!(
                    operation = O::ACTION,
                    region = self.region,
                    class = ?error.class,
                    code = error.code,
                    request_id = error.request_id.as_deref(),
                    "a call failed: {}",
                    error.message
                );
                Err(error)
            }
        }
    }
}
