//! A server to send requests to, over a socket or in this process.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use fleetwright_apiserver::Server;
use fleetwright_apiserver::service::{KnownUser, ResponseBody};
use fleetwright_apiserver::user::{AUTHENTICATED, MASTERS, UserInfo};
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::Value;
use tower::Service;

use crate::network::{Network, Sender};

/// A server.
pub(crate) enum Target {
    /// Behind TLS.
    Network(Network),
    /// In this process.
    Local(Server),
}

/// One caller of a server.
pub(crate) enum Caller {
    Network(Sender),
    Local(Server, KnownUser),
}

/// The answer to a request; its body is still coming.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    body: Body,
}

enum Body {
    Network(Incoming),
    Local(ResponseBody),
}

impl Target {
    /// The beginning of all addresses.
    pub(crate) fn base(&self) -> &str {
        match self {
            Self::Network(network) => network.base(),
            Self::Local(_) => "http://in-process",
        }
    }

    /// The address of a path.
    pub(crate) fn uri(&self, path: &str) -> Result<Uri> {
        format!("{}{path}", self.base()).parse().with_context(|| format!("{path} is no path"))
    }

    /// A caller. Callers with different numbers use different connections, as far as there are.
    pub(crate) fn caller(&self, number: usize) -> Caller {
        match self {
            Self::Network(network) => Caller::Network(network.sender(number)),
            Self::Local(server) => {
                let user = UserInfo::new("bench", &[MASTERS, AUTHENTICATED]);
                Caller::Local(server.clone(), KnownUser(Arc::new(user)))
            }
        }
    }

    /// Sends one request and reads its whole answer as JSON. For preparations.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value)> {
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = json_request(method, self.uri(path)?, bytes);
        let mut answer = self.caller(0).send(request).await?;
        let text = answer.read().await?;
        Ok((answer.status, serde_json::from_slice(&text).unwrap_or_default()))
    }

    /// The same, and it must succeed.
    pub(crate) async fn must(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let (status, value) = self.ask(method.clone(), path, body).await?;
        if !status.is_success() {
            bail!("{method} {path} was answered with {status}: {value}");
        }
        Ok(value)
    }
}

/// A request with a JSON body.
pub(crate) fn json_request(method: Method, uri: Uri, body: Bytes) -> Request<Full<Bytes>> {
    request(method, uri, "application/json", body)
}

/// A request that asks for JSON.
pub(crate) fn request(
    method: Method,
    uri: Uri,
    content_type: &'static str,
    body: Bytes,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static("fleetwright-bench"));
    request
}

impl Caller {
    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Result<Answer> {
        match self {
            Self::Network(sender) => {
                sender.ready().await.context("the connection is gone")?;
                let response = sender.send_request(request).await.context("no answer")?;
                let (parts, body) = response.into_parts();
                Ok(Answer { status: parts.status, body: Body::Network(body) })
            }
            Self::Local(server, user) => {
                request.extensions_mut().insert(user.clone());
                let (parts, body) = match server.call(request).await {
                    Ok(response) => response.into_parts(),
                    Err(never) => match never {},
                };
                Ok(Answer { status: parts.status, body: Body::Local(body) })
            }
        }
    }
}

impl Answer {
    /// The next piece of the body.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>> {
        loop {
            let frame = match &mut self.body {
                Body::Network(body) => match body.frame().await {
                    Some(frame) => Some(frame.context("the answer broke off")?),
                    None => None,
                },
                Body::Local(body) => body
                    .frame()
                    .await
                    .map(|frame| frame.unwrap_or_else(|never: Infallible| match never {})),
            };
            match frame.map(hyper::body::Frame::into_data) {
                None => return Ok(None),
                Some(Ok(data)) => return Ok(Some(data)),
                // Trailers are of no interest.
                Some(Err(_)) => {}
            }
        }
    }

    /// Reads to the end and says how many bytes there were.
    pub(crate) async fn drain(&mut self) -> Result<usize> {
        let mut length = 0;
        while let Some(piece) = self.piece().await? {
            length += piece.len();
        }
        Ok(length)
    }

    /// Reads the whole body.
    pub(crate) async fn read(&mut self) -> Result<Vec<u8>> {
        let mut whole = Vec::new();
        while let Some(piece) = self.piece().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// Reads to the end; an answer that is not a success is an error.
    pub(crate) async fn expect_success(&mut self) -> Result<()> {
        if self.status.is_success() {
            self.drain().await?;
            return Ok(());
        }
        let text = self.read().await?;
        bail!("a request was answered with {}: {}", self.status, String::from_utf8_lossy(&text))
    }
}
