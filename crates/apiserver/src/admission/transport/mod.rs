//! Ways to reach a webhook.

mod https;
mod in_process;
mod trust;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};

pub use https::Https;
pub use in_process::{InProcess, WebhookService};

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// At a URL.
    Url {
        /// The URL, `https://…`.
        url: String,
        /// The certificates, in PEM, that its certificate must be signed by.
        ca_bundle: Arc<[u8]>,
    },
    /// Behind a Service of the cluster.
    Service {
        /// The service's namespace.
        namespace: String,
        /// The service's name.
        name: String,
        /// The port.
        port: u16,
        /// The path, or empty.
        path: String,
        /// The certificates, in PEM, that its certificate must be signed by.
        ca_bundle: Arc<[u8]>,
    },
}

impl Target {
    /// The URL that requests are sent to.
    pub fn url(&self) -> String {
        match self {
            Self::Url { url, .. } => url.clone(),
            Self::Service { namespace, name, port, path, .. } => {
                let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
                format!("https://{name}.{namespace}.svc:{port}{slash}{path}")
            }
        }
    }

    fn ca_bundle(&self) -> &Arc<[u8]> {
        match self {
            Self::Url { ca_bundle, .. } | Self::Service { ca_bundle, .. } => ca_bundle,
        }
    }
}

/// Why a webhook cannot be reached, in the words of upstream's HTTP client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No such service.
    #[error("service {} not found", fleetwright_kschema::gotext::quote(.0))]
    NoService(String),
    /// The name cannot be resolved.
    #[error("dial tcp: lookup {0}: no such host")]
    NoHost(String),
    /// No connection.
    #[error("dial tcp {address}: connect: {problem}")]
    Connect {
        /// Where to.
        address: String,
        /// What happened.
        problem: String,
    },
    /// The other side's certificate is not trusted.
    #[error("tls: failed to verify certificate: {0}")]
    Certificate(String),
    /// Something else is wrong with the encryption.
    #[error("tls: {0}")]
    Tls(String),
    /// The URL is not one.
    #[error("unsupported URL: {0}")]
    Url(String),
    /// The conversation broke off.
    #[error("{0}")]
    Broken(String),
    /// The answer is larger than is read.
    #[error("response body is larger than {0} bytes")]
    TooLarge(usize),
}

/// Carries a request to a webhook. Timeouts are the caller's business.
pub trait WebhookTransport: Send + Sync {
    /// Sends the request and returns the whole response.
    fn call<'a>(
        &'a self,
        target: &'a Target,
        request: Request<Bytes>,
    ) -> BoxFuture<'a, Result<Response<Bytes>, TransportError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_urls() {
        let service = |path: &str| Target::Service {
            namespace: "ns".into(),
            name: "svc".into(),
            port: 443,
            path: path.into(),
            ca_bundle: Arc::from([]),
        };
        assert_eq!(service("/p").url(), "https://svc.ns.svc:443/p");
        assert_eq!(service("p").url(), "https://svc.ns.svc:443/p");
        assert_eq!(service("").url(), "https://svc.ns.svc:443");
    }
}
