//! Webhooks in this process.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use parking_lot::RwLock;
use tower::{BoxError, Service, ServiceExt as _, util::BoxCloneSyncService};

use super::{Target, TransportError, WebhookTransport};

/// A webhook in this process: a service of requests with whole bodies.
pub type WebhookService = BoxCloneSyncService<Request<Bytes>, Response<Bytes>, BoxError>;

type ServiceKey = (String, String, u16);

/// Calls webhooks in this process, and hands what is not registered to another transport, if
/// there is one. Needs no sockets and no real time.
#[derive(Default)]
pub struct InProcess {
    services: RwLock<BTreeMap<ServiceKey, WebhookService>>,
    urls: RwLock<BTreeMap<String, WebhookService>>,
    elsewhere: Option<Arc<dyn WebhookTransport>>,
}

impl InProcess {
    /// Webhooks that are not here are called over `elsewhere`.
    pub fn with_fallback(elsewhere: Arc<dyn WebhookTransport>) -> Self {
        Self { elsewhere: Some(elsewhere), ..Self::default() }
    }

    /// Answers for the Service `name` of `namespace` at `port`.
    pub fn register_service<S>(&self, namespace: &str, name: &str, port: u16, service: S)
    where
        S: Service<Request<Bytes>, Response = Response<Bytes>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError> + 'static,
        S::Future: Send + 'static,
    {
        let key = (namespace.to_owned(), name.to_owned(), port);
        self.services.write().insert(key, boxed(service));
    }

    /// Answers for every URL that starts with `prefix`.
    pub fn register_url<S>(&self, prefix: &str, service: S)
    where
        S: Service<Request<Bytes>, Response = Response<Bytes>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError> + 'static,
        S::Future: Send + 'static,
    {
        self.urls.write().insert(prefix.to_owned(), boxed(service));
    }

    fn find(&self, target: &Target) -> Option<WebhookService> {
        match target {
            Target::Service { namespace, name, port, .. } => {
                self.services.read().get(&(namespace.clone(), name.clone(), *port)).cloned()
            }
            Target::Url { url, .. } => self
                .urls
                .read()
                .iter()
                .rev()
                .find(|(prefix, _)| url.starts_with(prefix.as_str()))
                .map(|(_, service)| service.clone()),
        }
    }
}

fn boxed<S>(service: S) -> WebhookService
where
    S: Service<Request<Bytes>, Response = Response<Bytes>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError> + 'static,
    S::Future: Send + 'static,
{
    BoxCloneSyncService::new(service.map_err(Into::into))
}

impl WebhookTransport for InProcess {
    fn call<'a>(
        &'a self,
        target: &'a Target,
        request: Request<Bytes>,
    ) -> BoxFuture<'a, Result<Response<Bytes>, TransportError>> {
        if let Some(service) = self.find(target) {
            return Box::pin(async move {
                service
                    .oneshot(request)
                    .await
                    .map_err(|error| TransportError::Broken(error.to_string()))
            });
        }
        if let Some(elsewhere) = &self.elsewhere {
            return elsewhere.call(target, request);
        }
        let error = match target {
            Target::Service { name, .. } => TransportError::NoService(name.clone()),
            Target::Url { .. } => {
                TransportError::NoHost(request.uri().host().unwrap_or_default().to_owned())
            }
        };
        Box::pin(async move { Err(error) })
    }
}
