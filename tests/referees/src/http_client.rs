//! A small HTTP client for raw requests: any method, header and body, and streamed answers.
//!
//! Each request has its own connection. That costs a handshake, and in return one request can
//! never influence another: not the identity of a client certificate, not a body that the
//! server refused to read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::cluster::Access;

/// Longer than any answer takes; a server that hangs must not hang the suite.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Identity {
    /// The administrator, by client certificate.
    #[default]
    Admin,
    /// Nobody.
    Anonymous,
    /// One of [`crate::cluster::USERS`], by token.
    User(String),
    /// Whoever this token belongs to.
    Token(String),
}

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Any token.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body, possibly empty.
    pub body: Bytes,
    /// Who asks.
    pub identity: Identity,
}

impl Request {
    /// A request by the administrator without a body.
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
            identity: Identity::Admin,
        }
    }

    /// A GET by the administrator.
    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    /// Adds a JSON body.
    #[must_use]
    pub fn json(mut self, body: &str) -> Self {
        self.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        self.body = Bytes::copy_from_slice(body.as_bytes());
        self
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Response {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, or null.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// An answer whose body is still coming.
#[derive(Debug)]
pub struct Streaming {
    /// The status code.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    body: Incoming,
    // Drives the connection; it ends when this value is dropped.
    connection: JoinSet<()>,
}

impl Streaming {
    /// The next piece of the body, or nothing at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(data) = frame.context("the answer broke off")?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Reads the rest.
    pub async fn collect(self) -> Result<Response> {
        let body = self.body.collect().await.context("the answer broke off")?.to_bytes();
        drop(self.connection);
        Ok(Response { status: self.status, headers: self.headers, body })
    }
}

/// A client of one server.
#[derive(Debug, Clone)]
pub struct Client {
    authority: String,
    certified: Arc<ClientConfig>,
    plain: Arc<ClientConfig>,
    tokens: BTreeMap<String, String>,
}

impl Client {
    /// A client that trusts and is trusted by the server.
    pub fn new(access: &Access) -> Result<Self> {
        let authority = access
            .url
            .strip_prefix("https://")
            .with_context(|| format!("{} is not an https address", access.url))?
            .trim_end_matches('/')
            .to_owned();
        Ok(Self {
            authority,
            certified: tls(access, true)?,
            plain: tls(access, false)?,
            tokens: access.tokens.clone(),
        })
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&self, request: &Request) -> Result<Response> {
        match timeout(ANSWER_LIMIT, async { self.open(request).await?.collect().await }).await {
            Ok(answer) => answer,
            Err(_) => bail!("no whole answer to {} {} in time", request.method, request.target),
        }
    }

    /// Sends a request and returns as soon as the headers of the answer are there.
    pub async fn open(&self, request: &Request) -> Result<Streaming> {
        match timeout(ANSWER_LIMIT, self.connect_and_send(request)).await {
            Ok(answer) => answer,
            Err(_) => bail!("no answer to {} {} in time", request.method, request.target),
        }
    }

    async fn connect_and_send(&self, request: &Request) -> Result<Streaming> {
        let (config, token) = match &request.identity {
            Identity::Admin => (&self.certified, None),
            Identity::Anonymous => (&self.plain, None),
            Identity::Token(token) => (&self.plain, Some(token)),
            Identity::User(name) => {
                let token = self.tokens.get(name);
                (&self.plain, Some(token.with_context(|| format!("no user is named {name}"))?))
            }
        };
        let stream = TcpStream::connect(&self.authority).await.context("cannot connect")?;
        let host = self.authority.rsplit_once(':').map_or(&*self.authority, |(host, _)| host);
        let name = ServerName::try_from(host.to_owned()).context("a bad host name")?;
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name, stream).await.context("the TLS handshake failed")?;
        exchange(stream, &self.authority, token.map(String::as_str), request).await
    }
}

/// Posts JSON to `host:port` without TLS.
pub async fn post_plainly(authority: &str, target: &str, body: &str) -> Result<Response> {
    let exchange = async {
        let stream = TcpStream::connect(authority).await.context("cannot connect")?;
        exchange(stream, authority, None, &Request::new("POST", target).json(body))
            .await?
            .collect()
            .await
    };
    match timeout(ANSWER_LIMIT, exchange).await {
        Ok(answer) => answer,
        Err(_) => bail!("no answer to POST {target} in time"),
    }
}

/// Sends a request over a new connection.
async fn exchange<S>(
    stream: S,
    authority: &str,
    token: Option<&str>,
    request: &Request,
) -> Result<Streaming>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, driver) = http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await
        .context("the HTTP connection failed")?;
    let mut connection = JoinSet::new();
    connection.spawn(async move {
        // Its errors also reach whoever reads the answer.
        drop(driver.await);
    });

    let mut builder = http::Request::builder()
        .method(request.method.as_str())
        .uri(&request.target)
        .header("Host", authority);
    if let Some(token) = token {
        builder = builder.header("Authorization", format!("Bearer {token}"));
    }
    for (key, value) in &request.headers {
        builder = builder.header(key, value);
    }
    let message = builder
        .body(Full::new(request.body.clone()))
        .with_context(|| format!("{} {} is no request", request.method, request.target))?;
    let (parts, body) =
        sender.send_request(message).await.context("no answer to a request")?.into_parts();
    Ok(Streaming { status: parts.status.as_u16(), headers: parts.headers, body, connection })
}

fn tls(access: &Access, certified: bool) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(access.authority.as_bytes()) {
        roots.add(certificate.context("the authority's certificate is not PEM")?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("no TLS version is left")?
        .with_root_certificates(roots);
    let mut config = if certified {
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(access.admin_certificate.as_bytes())
                .collect::<Result<_, _>>()
                .context("the client certificate is not PEM")?;
        let key = PrivateKeyDer::from_pem_slice(access.admin_key.as_bytes())
            .context("the client key is not PEM")?;
        builder.with_client_auth_cert(chain, key).context("the client certificate is refused")?
    } else {
        builder.with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
