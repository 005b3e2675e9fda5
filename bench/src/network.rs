//! A lean HTTP/2 client with client certificates.
//!
//! A few connections are opened once and shared by all callers. Nothing is parsed, and windows
//! are wide, so that the client does not hold up the server.

use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use fleetwright_referees::Access;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// Connections to a server. client-go has one; several let a server read in parallel.
pub(crate) const CONNECTIONS: usize = 4;
/// Bytes that may be under way in one answer: a whole list.
const STREAM_WINDOW: u32 = 16 << 20;
/// Bytes that may be under way in one connection.
const CONNECTION_WINDOW: u32 = 256 << 20;

/// What sends requests on one connection.
pub(crate) type Sender = http2::SendRequest<Full<Bytes>>;

/// A server behind TLS, and connections to it.
pub(crate) struct Network {
    base: String,
    senders: Vec<Sender>,
    // Drives the connections; they end when this value is dropped.
    _drivers: JoinSet<()>,
}

impl Network {
    /// Connects as the administrator.
    pub(crate) async fn connect(access: &Access) -> Result<Self> {
        let connector = TlsConnector::from(Arc::new(tls(access)?));
        let base = access.url.trim_end_matches('/').to_owned();
        let address = base.strip_prefix("https://").context("not an https address")?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let name = ServerName::try_from(host.to_owned()).context("a bad host name")?;
        let mut drivers = JoinSet::new();
        let mut senders = Vec::new();
        for _ in 0..CONNECTIONS {
            let stream = TcpStream::connect(address).await.context("cannot connect")?;
            stream.set_nodelay(true).context("cannot set up the connection")?;
            let stream = connector
                .connect(name.clone(), stream)
                .await
                .context("the TLS handshake failed")?;
            let (sender, driver) = http2::Builder::new(TokioExecutor::new())
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .handshake(TokioIo::new(stream))
                .await
                .context("the HTTP connection failed")?;
            drivers.spawn(async move {
                // Its errors also reach whoever waits for an answer.
                drop(driver.await);
            });
            senders.push(sender);
        }
        Ok(Self { base, senders, _drivers: drivers })
    }

    /// The beginning of all addresses.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// What a caller sends with.
    pub(crate) fn sender(&self, number: usize) -> Sender {
        self.senders[number % CONNECTIONS].clone()
    }
}

fn tls(access: &Access) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(access.authority.as_bytes()) {
        roots.add(certificate.context("the authority's certificate is not PEM")?)?;
    }
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(access.admin_certificate.as_bytes())
            .collect::<Result<_, _>>()
            .context("the client certificate is not PEM")?;
    let key = PrivateKeyDer::from_pem_slice(access.admin_key.as_bytes())
        .context("the client key is not PEM")?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("no TLS version is left")?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .context("the client certificate is refused")?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}
