//! The transport on sockets: HTTP/1.1 with TLS.

use std::{error::Error as _, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::FutureExt as _;
use http::{Request, Response, Uri, uri::Scheme};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{HttpConnector, proxy::Tunnel},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer};
use tokio::net::TcpStream;
use tower::{BoxError, ServiceExt, util::BoxCloneSyncService};

use crate::{
    proxy::{Proxies, Proxy},
    transport::{Transport, TransportError},
};

/// How the client behaves.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// From the name to a connection with TLS.
    pub connect_timeout: Duration,
    /// From the first byte of the request to the last of the answer.
    pub timeout: Duration,
    /// An answer longer than this is cut off and counts as lost.
    pub largest_answer: usize,
    /// Authorities that are trusted beside those of the system.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The proxies on the way.
    pub proxies: Proxies,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_mins(1),
            largest_answer: 64 << 20,
            authorities: Vec::new(),
            proxies: Proxies::default(),
        }
    }
}

/// The client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// An authority's certificate cannot be read.
    #[error("an authority's certificate cannot be used: {0}")]
    Authority(rustls::Error),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(rustls::Error),
}

type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>;
type Connections = Client<Connector, Full<Bytes>>;

/// A transport on sockets. Connections are kept and shared by its clones.
pub fn http_client(options: &HttpOptions) -> Result<Transport, HttpClientError> {
    let mut roots = RootCertStore::empty();
    // A system without certificates can still speak to those that are named.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for authority in &options.authorities {
        roots.add(authority.clone()).map_err(HttpClientError::Authority)?;
    }
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(HttpClientError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let tls = Arc::new(tls);
    let direct = HttpsConnector::from((tcp.clone(), tls.clone()));
    let tunnel = move |proxy: &Proxy| {
        let mut tunnel = Tunnel::new(proxy.uri.clone(), tcp.clone());
        if let Some(authorization) = &proxy.authorization {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        HttpsConnector::from((tunnel, tls.clone()))
    };
    let (connect_timeout, proxies) = (options.connect_timeout, options.proxies.clone());
    let connector = Connector::new(tower::service_fn(move |uri: Uri| {
        let connection = match proxies.of(&uri) {
            None => direct.clone().oneshot(uri).boxed(),
            Some(proxy) => tunnel(proxy).oneshot(with_port(uri)).boxed(),
        };
        async move { tokio::time::timeout(connect_timeout, connection).await? }
    }));
    let connections: Connections = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        // Shorter than what clouds allow, so that a request seldom meets a closing connection.
        .pool_idle_timeout(Duration::from_secs(20))
        .build(connector);
    let (timeout, largest) = (options.timeout, options.largest_answer);
    let service = tower::service_fn(move |request: Request<Bytes>| {
        let connections = connections.clone();
        async move {
            let exchange = exchange(&connections, request, largest);
            tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| {
                Err(TransportError::AnswerLost(format!("nothing within {timeout:?}")))
            })
        }
    });
    Ok(Transport::new(service))
}

async fn exchange(
    connections: &Connections,
    request: Request<Bytes>,
    largest: usize,
) -> Result<Response<Bytes>, TransportError> {
    let answer = connections.request(request.map(Full::new)).await.map_err(|error| {
        let text = error.source().map_or_else(|| error.to_string(), chain);
        if error.is_connect() {
            TransportError::NotSent(text)
        } else {
            TransportError::AnswerLost(text)
        }
    })?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, largest).collect().await;
    let body = body.map_err(|error| TransportError::AnswerLost(error.to_string()))?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

/// The same place with its port, which a tunnel would otherwise take to be that of TLS.
fn with_port(uri: Uri) -> Uri {
    match uri.host() {
        Some(host) if uri.port().is_none() && uri.scheme() == Some(&Scheme::HTTP) => {
            format!("http://{host}:80").parse().unwrap_or(uri)
        }
        _ => uri,
    }
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    fn get(address: &str) -> Request<Bytes> {
        Request::get(format!("http://{address}/")).body(Bytes::new()).unwrap()
    }

    fn quick() -> Transport {
        let timeout = Duration::from_millis(300);
        http_client(&HttpOptions { connect_timeout: timeout, timeout, ..HttpOptions::default() })
            .unwrap()
    }

    #[tokio::test]
    async fn an_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = socket.read(&mut request).await.unwrap();
            let answer = b"HTTP/1.1 503 no\r\ncontent-length: 4\r\n\r\nbusy";
            socket.write_all(answer).await.unwrap();
            socket
        };
        let (answer, _socket) = tokio::join!(quick().oneshot(get(&address)), server);
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.body(), "busy");
    }

    #[tokio::test]
    async fn through_a_proxy() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = BTreeMap::from([("HTTP_PROXY".to_owned(), format!("http://a:b@{address}"))]);
        let proxies = Proxies::from_environment(&proxy).unwrap();
        let client = http_client(&HttpOptions { proxies, ..HttpOptions::default() }).unwrap();
        let server = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            let answers = [&b"HTTP/1.1 200 ok\r\n\r\n"[..], b"HTTP/1.1 204 no\r\n\r\n"];
            for answer in answers {
                let mut request = [0; 1024];
                let length = socket.read(&mut request).await.unwrap();
                asked.push(String::from_utf8_lossy(&request[..length]).into_owned());
                socket.write_all(answer).await.unwrap();
            }
            (asked, socket)
        };
        let (answer, (asked, _socket)) =
            tokio::join!(client.oneshot(get("ec2.example.com")), server);
        assert_eq!(answer.unwrap().status(), 204);
        assert!(asked[0].starts_with("CONNECT ec2.example.com:80 HTTP/1.1"), "{asked:?}");
        assert!(asked[0].contains("Basic YTpi"), "{asked:?}");
        assert!(asked[1].starts_with("GET / ") && !asked[1].contains("Basic"), "{asked:?}");
    }

    #[tokio::test]
    async fn nothing_listens_so_nothing_was_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let answer = quick().oneshot(get(&address)).await;
        assert!(matches!(answer, Err(TransportError::NotSent(_))), "{answer:?}");
    }

    #[tokio::test]
    async fn silence_and_a_closed_connection_lose_the_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let silent = async { listener.accept().await.unwrap() };
        let (answer, _socket) = tokio::join!(quick().oneshot(get(&address)), silent);
        assert!(matches!(answer, Err(TransportError::AnswerLost(_))), "{answer:?}");

        let closing = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = socket.read(&mut request).await.unwrap();
        };
        let (answer, ()) = tokio::join!(quick().oneshot(get(&address)), closing);
        assert!(matches!(answer, Err(TransportError::AnswerLost(_))), "{answer:?}");
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_is_lost() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = socket.read(&mut request).await.unwrap();
            let answer = b"HTTP/1.1 200 ok\r\ncontent-length: 20\r\n\r\n01234567890123456789";
            socket.write_all(answer).await.unwrap();
            socket
        };
        let options = HttpOptions { largest_answer: 10, ..HttpOptions::default() };
        let client = http_client(&options).unwrap();
        let (answer, _socket) = tokio::join!(client.oneshot(get(&address)), server);
        assert!(matches!(answer, Err(TransportError::AnswerLost(_))), "{answer:?}");
    }
}
