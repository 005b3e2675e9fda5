//! The server as a service: HTTP requests in, responses out, with or without a socket.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::Value;

use crate::{
    handlers::{self, Call, Encoding, Reply},
    query::Query,
    registry::Registry,
    request::{Context, RequestInfo},
    reviews,
    server::Server,
    status::{ApiError, Result},
    user::UserInfo,
    warnings,
};

/// The body of a response.
pub type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

/// A request extension: the user is known already (a client in the same process).
#[derive(Clone, Debug)]
pub struct KnownUser(pub Arc<UserInfo>);

/// A request extension: the certificate that the client of a connection presented, verified.
#[derive(Clone, Debug)]
pub struct PeerCertificate {
    /// In DER.
    pub(crate) der: Bytes,
    /// Whom it stands for, once that was found out.
    pub(crate) user: Arc<OnceLock<Arc<UserInfo>>>,
}

impl PeerCertificate {
    /// A verified certificate in DER.
    pub fn new(der: &[u8]) -> Self {
        Self { der: Bytes::copy_from_slice(der), user: Arc::default() }
    }
}

/// How long a request may take that is not a watch.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

impl<B> tower::Service<Request<B>> for Server
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future =
        Pin<Box<dyn Future<Output = std::result::Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(handle(server, request).await) })
    }
}

/// Handles a request.
pub async fn handle<B>(server: Server, request: Request<B>) -> Response<ResponseBody>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let (parts, body) = request.into_parts();
    let mut warnings = Vec::new();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let encoding = handlers::negotiate(&parts.headers, &Query::default())
        .map_or(Encoding::Json, |(_, encoding)| encoding);
    let outcome = route(&server, parts, body, query, &mut warnings).await;
    let mut response = match outcome {
        Ok(Answer::Reply(reply)) => encode(reply, encoding),
        Ok(Answer::Response(response)) => response,
        Err(error) if error.is_plain() => plain(error.code(), error.message()),
        Err(error) => {
            let mut response = encode(Reply::json(error.code(), error.to_value()), encoding);
            if let Some(seconds) = error.retry_after_seconds() {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
    };
    for warning in warnings::headers(&warnings) {
        response.headers_mut().append(header::WARNING, warning);
    }
    response
}

/// What a route produces.
pub(crate) enum Answer {
    Reply(Reply),
    Response(Response<ResponseBody>),
}

async fn route<B>(
    server: &Server,
    parts: http::request::Parts,
    body: B,
    query: Query,
    warnings: &mut Vec<String>,
) -> Result<Answer>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let length = parts.uri.path().len() + parts.uri.query().map_or(0, str::len);
    if length > server.limits().url {
        return Err(ApiError::new(
            StatusCode::URI_TOO_LONG,
            "",
            format!("the URL has {length} characters; at most {} are read", server.limits().url),
            None,
        ));
    }
    let info = Arc::new(RequestInfo::parse(&parts.method, parts.uri.path(), &query));
    if info.path.split('/').any(|segment| segment == "..") {
        return Err(ApiError::bad_request("invalid path"));
    }
    let user = server.access().identify(&parts, &info, warnings)?;
    server.access().authorize(&user, &info)?;
    if !info.is_resource {
        return crate::nonresource::answer(server, &parts, &info);
    }
    let user_agent =
        parts.headers.get(header::USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let context = Context { user, info: Arc::clone(&info), user_agent: user_agent.into() };
    if let Some(review) = reviews::find(&info.group, &info.version, &info.resource) {
        let body = read_body(body, server.limits().body).await?;
        return reviews::answer(server, review, &context, &parts.headers, &body).map(Answer::Reply);
    }
    let registry = server.registry();
    let resource = registry
        .find(&info.group, &info.version, &info.resource)
        .ok_or_else(|| unknown_group(registry, &info.group))?;
    warnings.extend(resource.deprecation.clone());
    let (shape, _) = handlers::negotiate(&parts.headers, &query)?;
    let body = read_body(body, server.limits().body).await?;
    let mut call = Call {
        server: server.clone(),
        resource,
        context,
        query,
        headers: parts.headers,
        body,
        shape,
        warnings: Vec::new(),
        admitted: false,
    };
    let outcome = tokio::time::timeout(REQUEST_TIMEOUT, call.handle(&parts.method)).await;
    warnings.append(&mut call.warnings);
    match outcome {
        Ok(reply) => reply.map(Answer::Reply),
        Err(_) => Err(ApiError::timeout("request did not complete within the allotted timeout", 0)),
    }
}

/// Groups that only definitions could bring are answered for by another part of Kubernetes.
pub(crate) fn unknown_group(registry: &Registry, group: &str) -> ApiError {
    let built_in = !group.contains('.') || group.ends_with(".k8s.io");
    if group.is_empty() || (built_in && registry.has_group(group)) {
        ApiError::path_not_found()
    } else {
        ApiError::page_not_found()
    }
}

async fn read_body<B>(mut body: B, limit: usize) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let mut bytes = BytesMut::new();
    let mut first = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::bad_request(error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + first.as_ref().map_or(0, Bytes::len) + data.len() > limit {
            return Err(ApiError::too_large(&format!("limit is {limit}")));
        }
        // Most bodies come in one piece, which needs no copy.
        if first.is_none() && bytes.is_empty() {
            first = Some(data);
        } else {
            if let Some(first) = first.take() {
                bytes.extend_from_slice(&first);
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(first.unwrap_or_else(|| bytes.freeze()))
}

fn encode(reply: Reply, encoding: Encoding) -> Response<ResponseBody> {
    let mut content_type = "application/json";
    let body = match (reply.body, encoding) {
        (handlers::Body::Stream(stream), _) => {
            use futures::StreamExt;
            let frames = stream.map(|piece| piece.map(Frame::data));
            UnsyncBoxBody::new(StreamBody::new(frames))
        }
        (body, Encoding::Yaml) => {
            content_type = "application/yaml";
            let value: Value = match body {
                handlers::Body::Json(value) => value,
                handlers::Body::Pieces(pieces) => {
                    serde_json::from_slice(&pieces.concat()).unwrap_or_default()
                }
                handlers::Body::Stream(_) => Value::Null,
            };
            full(serde_saphyr::to_string(&value).unwrap_or_default())
        }
        (handlers::Body::Pieces(pieces), Encoding::Json) => {
            let total = pieces.iter().map(Bytes::len).sum();
            let mut bytes = BytesMut::with_capacity(total);
            for piece in pieces {
                bytes.extend_from_slice(&piece);
            }
            full(bytes.freeze())
        }
        (handlers::Body::Json(value), Encoding::Json) => full(value.to_string()),
    };
    respond(reply.status, content_type, body)
}

/// A body in one piece.
pub(crate) fn full(bytes: impl Into<Bytes>) -> ResponseBody {
    Full::new(bytes.into()).boxed_unsync()
}

/// A response with the headers that every response has.
pub(crate) fn respond(
    status: StatusCode,
    content_type: &str,
    body: ResponseBody,
) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if !content_type.is_empty()
        && let Ok(value) = HeaderValue::from_str(content_type)
    {
        headers.insert(header::CONTENT_TYPE, value);
    }
    response
}

/// A response that is text.
pub(crate) fn plain(status: StatusCode, text: &str) -> Response<ResponseBody> {
    let mut response = respond(status, "text/plain; charset=utf-8", full(format!("{text}\n")));
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The reason of a `Status`, as a constant.
pub(crate) fn reason_of(status: &Value) -> &'static str {
    const REASONS: &[&str] = &[
        "NotFound",
        "AlreadyExists",
        "Conflict",
        "Invalid",
        "BadRequest",
        "Forbidden",
        "Unauthorized",
        "TooManyRequests",
        "Timeout",
        "ServiceUnavailable",
        "InternalError",
        "MethodNotAllowed",
        "Expired",
    ];
    let reason = crate::object::text(status, &["reason"]);
    REASONS.iter().find(|r| **r == reason).copied().unwrap_or("")
}
