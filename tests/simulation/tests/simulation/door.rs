//! The ways of a process to the API and to the cloud.

use std::{convert::Infallible, sync::Arc, task::Poll};

use bytes::Bytes;
use fleetwright_apiserver::{
    Server,
    service::{KnownUser, ResponseBody, handle},
    user::{AUTHENTICATED, MASTERS, UserInfo},
};
use fleetwright_cloud::transport::{Transport, TransportError};
use futures::{FutureExt, future::BoxFuture, stream};
use http::{Method, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::{Client, client::Body};
use serde_json::json;
use tower::ServiceExt;

use crate::{
    host::Host,
    traffic::{Failed, Request, Traffic},
};

/// A client of a process, as one of its controllers.
pub(crate) fn client(
    server: &Server,
    host: &Arc<Host>,
    traffic: &Arc<Traffic>,
    name: &str,
) -> Client {
    let user = format!("system:serviceaccount:fleetwright-system:{name}");
    let door = Door {
        server: server.clone(),
        host: host.clone(),
        traffic: traffic.clone(),
        user: Arc::new(UserInfo::new(&user, &[MASTERS, AUTHENTICATED])),
        name: name.to_owned(),
    };
    Client::new(door, "default")
}

#[derive(Clone)]
struct Door {
    server: Server,
    host: Arc<Host>,
    traffic: Arc<Traffic>,
    user: Arc<UserInfo>,
    name: String,
}

/// The API did not answer.
#[derive(Debug)]
struct NoAnswer(Failed);

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no answer: {:?}", self.0)
    }
}

impl std::error::Error for NoAnswer {}

impl tower::Service<http::Request<Body>> for Door {
    type Response = Response<ResponseBody>;
    type Error = NoAnswer;
    type Future = BoxFuture<'static, Result<Self::Response, NoAnswer>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), NoAnswer>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        request.extensions_mut().insert(KnownUser(self.user.clone()));
        let door = self.clone();
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            return door.watch(request).boxed();
        }
        door.ask(request).boxed()
    }
}

impl Door {
    async fn ask(self, request: http::Request<Body>) -> Result<Response<ResponseBody>, NoAnswer> {
        let path = request.uri().path().to_owned();
        let lease = path.contains("/leases");
        let sent = Request {
            text: format!("{} {} {path}", self.name, request.method()),
            cloud: false,
            write: request.method() != Method::GET && !lease && !path.contains("/events"),
            lease,
        };
        let server = self.server.clone();
        let answer = self.traffic.pass(&self.host, sent, handle(server, request)).await;
        match answer {
            Err(Failed::Throttled) => Ok(refusal(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")),
            answer => answer.map_err(NoAnswer),
        }
    }

    async fn watch(self, request: http::Request<Body>) -> Result<Response<ResponseBody>, NoAnswer> {
        if self.host.is_dead() {
            return std::future::pending().await;
        }
        if self.host.cut_off.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(NoAnswer(Failed::NotSent));
        }
        if self.host.take_expired() {
            return Ok(refusal(StatusCode::GONE, "Expired"));
        }
        let response = handle(self.server, request).await;
        let streams = self.host.streams.subscribe();
        let generation = streams.borrow().generation;
        Ok(response.map(|body| held(body, streams, generation)))
    }
}

fn refusal(code: StatusCode, reason: &str) -> Response<ResponseBody> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "simulated", "reason": reason, "code": code.as_u16(),
        "details": {"retryAfterSeconds": 1},
    });
    let mut response = Response::new(Full::new(Bytes::from(status.to_string())).boxed_unsync());
    *response.status_mut() = code;
    response
}

/// A stream that stands still while its host is told to hear nothing, and ends with its
/// generation.
fn held(
    body: ResponseBody,
    streams: tokio::sync::watch::Receiver<crate::host::Streams>,
    generation: u64,
) -> ResponseBody {
    let frames = stream::unfold((body, streams), move |(mut body, mut streams)| async move {
        loop {
            let now = *streams.borrow_and_update();
            if now.generation != generation {
                return None;
            }
            if now.held {
                streams.changed().await.ok()?;
                continue;
            }
            tokio::select! {
                biased;
                changed = streams.changed() => changed.ok()?,
                frame = body.frame() => {
                    let frame: Frame<Bytes> = frame?.unwrap_or_else(|never| match never {});
                    return Some((Ok::<_, Infallible>(frame), (body, streams)));
                }
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// The way of a process to the cloud.
pub(crate) fn transport(cloud: &Transport, host: &Arc<Host>, traffic: &Arc<Traffic>) -> Transport {
    let (cloud, host, traffic) = (cloud.clone(), host.clone(), traffic.clone());
    Transport::new(tower::service_fn(move |request: http::Request<Bytes>| {
        let (cloud, host, traffic) = (cloud.clone(), host.clone(), traffic.clone());
        async move {
            let text = String::from_utf8_lossy(request.body()).into_owned();
            let action = text
                .split('&')
                .find_map(|pair| pair.strip_prefix("Action="))
                .unwrap_or_default()
                .to_owned();
            let sent = Request {
                write: !action.starts_with("Describe"),
                text: format!("aws {action}"),
                cloud: true,
                lease: false,
            };
            match traffic.pass(&host, sent, cloud.oneshot(request)).await {
                Ok(answer) => answer,
                Err(Failed::NotSent) => Err(TransportError::NotSent("simulated".to_owned())),
                Err(Failed::Lost) => Err(TransportError::AnswerLost("simulated".to_owned())),
                Err(Failed::Throttled) => Ok(throttled()),
            }
        }
        .boxed()
    }))
}

fn throttled() -> Response<Bytes> {
    let text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error>\
        <Code>RequestLimitExceeded</Code><Message>Request limit exceeded.</Message>\
        </Error></Errors><RequestID>simulated</RequestID></Response>";
    let mut response = Response::new(Bytes::from_static(text.as_bytes()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}
