//! One question to a metadata service: bounded in time and size, never through a proxy, and
//! redirects are not followed.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use fleetwright_cloud::transport::{Transport, TransportError};
use http::{HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::ServiceExt as _;

use crate::trouble::Trouble;

/// Where AWS, Google Cloud and Azure answer.
pub const ENDPOINT: &str = "http://169.254.169.254";
/// Where AWS answers on IPv6.
pub const AWS_ENDPOINT_IPV6: &str = "http://[fd00:ec2::254]";

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(1);
/// How long a question may take as a whole.
pub const LIMIT: Duration = Duration::from_secs(2);
/// The longest answer that is read.
pub const LARGEST: usize = 64 << 10;

/// A metadata service.
#[derive(Clone)]
pub struct Metadata {
    endpoint: String,
    transport: Transport,
}

/// What came back.
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: http::HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Metadata {
    /// The service at an endpoint such as [`ENDPOINT`], over sockets.
    pub fn at(endpoint: &str) -> Self {
        Self::through(endpoint, Transport::new(tower::service_fn(exchange)))
    }

    /// The service behind a transport.
    pub fn through(endpoint: &str, transport: Transport) -> Self {
        Self { endpoint: endpoint.trim_end_matches('/').to_owned(), transport }
    }

    /// Asks once.
    pub(crate) async fn ask(
        &self,
        what: &'static str,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Answer, Trouble> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.endpoint))
            .body(Bytes::new())
            .map_err(|error| Trouble::unreadable(what, error))?;
        for (name, value) in headers {
            let value =
                HeaderValue::from_str(value).map_err(|error| Trouble::unreadable(what, error))?;
            request.headers_mut().insert(*name, value);
        }
        let answer = tokio::time::timeout(LIMIT, self.transport.clone().oneshot(request))
            .await
            .map_err(|_| Trouble::TooSlow { what, limit: LIMIT })?
            .map_err(|source| Trouble::Unreachable { what, source })?;
        let (head, body) = answer.into_parts();
        if body.len() > LARGEST {
            return Err(Trouble::unreadable(what, "it is longer than 64 KiB"));
        }
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }
}

/// One connection for one question: a connection that hangs is never met again.
async fn exchange(request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
    let not_sent = |error: &dyn ToString| TransportError::NotSent(error.to_string());
    let lost = |error: &dyn ToString| TransportError::AnswerLost(error.to_string());
    let host = request.uri().host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = request.uri().port_u16().unwrap_or(80);
    let stream = tokio::time::timeout(CONNECT, TcpStream::connect((host, port)))
        .await
        .map_err(|_| TransportError::NotSent(format!("no connection within {CONNECT:?}")))?
        .map_err(|error| not_sent(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| not_sent(&error))?;
    let request = relative(request);
    let answer = async {
        let answer = sender.send_request(request.map(Full::new)).await.map_err(|e| lost(&e))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, LARGEST).collect().await.map_err(|e| lost(&e))?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    let (mut answer, mut connection) = (pin!(answer), pin!(connection));
    tokio::select! {
        answer = &mut answer => answer,
        // What it has received is still to be read.
        _ = &mut connection => answer.await,
    }
}

/// As HTTP/1.1 wants it: the host in a header, the rest in the first line.
fn relative(mut request: Request<Bytes>) -> Request<Bytes> {
    let uri = request.uri();
    if let Some(host) = uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        if let Ok(path) = path.parse::<Uri>() {
            *request.uri_mut() = path;
        }
        request.headers_mut().insert(header::HOST, host);
    }
    request
}
