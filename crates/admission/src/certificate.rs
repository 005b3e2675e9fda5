//! The certificate that the service shows, which may be replaced while it runs.

use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the certificate of the webhooks: {0}")]
pub struct CertificateError(String);

/// The certificate that clients are shown.
#[derive(Debug)]
pub struct Certificate {
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// A certificate and its key, in PEM.
    pub fn new(certificate: &str, key: &str) -> Result<Arc<Self>, CertificateError> {
        Ok(Arc::new(Self { current: RwLock::new(Arc::new(read(certificate, key)?)) }))
    }

    /// From now on clients are shown this one. Connections that are open stay.
    pub fn replace(&self, certificate: &str, key: &str) -> Result<(), CertificateError> {
        let next = Arc::new(read(certificate, key)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// What [`crate::https::serve`] needs.
    pub fn tls(self: &Arc<Self>) -> Result<Arc<ServerConfig>, CertificateError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| CertificateError(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as _);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(certificate: &str, key: &str) -> Result<CertifiedKey, CertificateError> {
    let failed = |error: &dyn std::fmt::Display| CertificateError(error.to_string());
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&error))?;
    if chain.is_empty() {
        return Err(CertificateError("there is none".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| failed(&error))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| failed(&error))
}
