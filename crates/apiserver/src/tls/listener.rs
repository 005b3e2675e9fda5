//! The accept loop: TLS, client certificates, HTTP/1.1 and HTTP/2.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::{net::TcpListener, task::JoinSet, time::timeout};
use tokio_rustls::TlsAcceptor;

use super::Identity;
use crate::{server::Server, service};

/// How long a client may take to say hello.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long open requests may take when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// Streams that one HTTP/2 connection may have at a time; client-go shares one connection.
const STREAMS: u32 = 1000;
/// Connections at one time.
const CONNECTIONS: usize = 4096;

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The certificates cannot be used.
    #[error("cannot use the certificates for TLS: {0}")]
    Tls(String),
}

/// A socket that waits for clients.
pub struct Listener {
    socket: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener {
    /// Binds an address. Clients may present certificates that `authority` (PEM) signed.
    pub async fn bind(
        address: SocketAddr,
        identity: &Identity,
        authority: &str,
    ) -> Result<Self, ListenError> {
        let config = tls_config(identity, authority).map_err(ListenError::Tls)?;
        let socket = TcpListener::bind(address)
            .await
            .map_err(|source| ListenError::Bind { address, source })?;
        Ok(Self { socket, acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until the server is told to stop and open requests are done.
    pub async fn serve(self, server: Server) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = server.stopping() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.socket.accept(), if connections.len() < CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        let acceptor = self.acceptor.clone();
                        connections.spawn(serve_connection(server.clone(), acceptor, stream));
                    }
                    // Out of descriptors, for example: wait for some to be given back.
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
            }
        }
        let drained =
            timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            connections.shutdown().await;
        }
    }
}

async fn serve_connection(server: Server, acceptor: TlsAcceptor, stream: tokio::net::TcpStream) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await else { return };
    let certificate = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[CertificateDer<'_>]>::first)
        .map(|der| service::PeerCertificate::new(der));
    let handler = server.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let server = handler.clone();
        if let Some(certificate) = &certificate {
            request.extensions_mut().insert(certificate.clone());
        }
        async move { Ok::<_, std::convert::Infallible>(service::handle(server, request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(hyper_util::rt::TokioTimer::new()).header_read_timeout(HANDSHAKE_TIMEOUT);
    builder.http2().max_concurrent_streams(STREAMS);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let mut stopping = false;
    loop {
        tokio::select! {
            // A client that goes away is not worth a word.
            _ = connection.as_mut() => return,
            () = server.stopping(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

fn tls_config(identity: &Identity, authority: &str) -> Result<ServerConfig, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(identity.certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| text(&error))?;
    let key =
        PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(|error| text(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate.map_err(|error| text(&error))?).map_err(|error| text(&error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(|error| text(&error))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| text(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates, key)
        .map_err(|error| text(&error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
