//! The instance metadata service, version 2 alone: what an instance sees of itself.
//!
//! Each instance has its own: [`super::Aws::metadata`] in the same process, and over a socket
//! everything below `/_fleetwright/metadata/<instance>/`.

use std::{
    collections::BTreeMap,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use fleetwright_clock::Random;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use jiff::Timestamp;
use serde_json::json;

use super::{
    faults::Effect,
    model::{
        Region,
        instance::{Instance, InstanceState},
        maintenance::ScheduledEvent,
    },
    service::Aws,
};
use crate::NoAnswer;

/// Where the services of all instances are, below the control surface.
pub(super) const PREFIX: &str = "metadata/";

const TTL_HEADER: &str = "x-aws-ec2-metadata-token-ttl-seconds";
const TOKEN_HEADER: &str = "x-aws-ec2-metadata-token";
/// The longest life of a token, in seconds.
const LONGEST: u64 = 21_600;
/// More than any client of the service should read.
const TOO_MUCH: usize = 16 << 20;

/// The metadata service of one instance.
#[derive(Clone)]
pub struct Metadata {
    aws: Aws,
    instance: String,
}

impl Metadata {
    pub(super) fn new(aws: Aws, instance: &str) -> Self {
        Self { aws, instance: instance.to_owned() }
    }
}

impl tower::Service<Request<Bytes>> for Metadata {
    type Response = Response<Bytes>;
    type Error = NoAnswer;
    type Future = BoxFuture<'static, Result<Response<Bytes>, NoAnswer>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoAnswer>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let Self { aws, instance } = self.clone();
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            aws.answer_metadata(&instance, &request, &path).await
        })
    }
}

/// The tokens that were given out: whose, and until when.
#[derive(Debug, Default)]
pub(super) struct Tokens(BTreeMap<String, (String, Timestamp)>);

impl Tokens {
    fn give(&mut self, random: &Random, instance: &str, now: Timestamp, lasts: Duration) -> String {
        self.0.retain(|_, (_, until)| *until > now);
        let token = format!("{}A==", random.name_suffix(52));
        self.0.insert(token.clone(), (instance.to_owned(), now + lasts));
        token
    }

    fn good(&self, token: &str, instance: &str, now: Timestamp) -> bool {
        self.0.get(token).is_some_and(|(whose, until)| whose == instance && *until > now)
    }
}

/// What a fault makes of an answer; none when the answer comes all the same.
pub(super) async fn spoilt(effect: &Effect) -> Option<Result<Response<Bytes>, NoAnswer>> {
    Some(match effect {
        Effect::Delay(_) => return None,
        Effect::Throttle => Ok(plain(StatusCode::TOO_MANY_REQUESTS, "Too Many Requests")),
        Effect::Error { status, message, .. } => {
            let status = StatusCode::from_u16(*status);
            Ok(plain(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), message))
        }
        Effect::Lost { after: false } => Err(NoAnswer::NotSent),
        Effect::Lost { after: true } => Err(NoAnswer::Lost),
        Effect::Garbage => Ok(plain(StatusCode::OK, "<html>\u{fffd}{\"action\": [")),
        Effect::Endless => Ok(plain(StatusCode::OK, &"x".repeat(TOO_MUCH))),
        Effect::Hang => std::future::pending().await,
    })
}

/// Answers a question. Only an instance that runs can ask.
pub(super) fn answer(
    region: &Region,
    tokens: &mut Tokens,
    random: &Random,
    instance: &str,
    request: &Request<Bytes>,
    path: &str,
    now: Timestamp,
) -> Result<Response<Bytes>, NoAnswer> {
    let asks = region.instance(instance).filter(|asks| {
        let running = matches!(asks.state, InstanceState::Pending | InstanceState::Running);
        running && asks.with.metadata.endpoint != "disabled"
    });
    let Some(asks) = asks else { return Err(NoAnswer::NotSent) };
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if path == "/latest/api/token" {
        return Ok(token(tokens, random, instance, request, now));
    }
    if request.method() != Method::GET {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"));
    }
    if !header(TOKEN_HEADER).is_some_and(|token| tokens.good(token, instance, now)) {
        return Ok(plain(StatusCode::UNAUTHORIZED, "Unauthorized"));
    }
    let item = path.strip_prefix("/latest/meta-data/").and_then(|item| {
        let item = item.trim_end_matches('/');
        self::item(region, asks, item)
    });
    Ok(match item {
        Some(text) => plain(StatusCode::OK, &text),
        None => plain(StatusCode::NOT_FOUND, "Not Found"),
    })
}

fn token(
    tokens: &mut Tokens,
    random: &Random,
    instance: &str,
    request: &Request<Bytes>,
    now: Timestamp,
) -> Response<Bytes> {
    if request.method() != Method::PUT {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    }
    // What came through a proxy is not from the instance itself.
    if request.headers().contains_key("x-forwarded-for") {
        return plain(StatusCode::FORBIDDEN, "Forbidden");
    }
    let ttl = request.headers().get(TTL_HEADER).and_then(|ttl| ttl.to_str().ok()?.parse().ok());
    let Some(ttl) = ttl.filter(|ttl| (1..=LONGEST).contains(ttl)) else {
        return plain(StatusCode::BAD_REQUEST, "Bad Request");
    };
    let token = tokens.give(random, instance, now, Duration::from_secs(ttl));
    let mut answer = plain(StatusCode::OK, &token);
    answer.headers_mut().insert(TTL_HEADER, HeaderValue::from(ttl));
    answer
}

/// The text of an item; none where there is no such item now.
fn item(region: &Region, asks: &Instance, item: &str) -> Option<String> {
    Some(match item {
        "instance-id" => asks.id.clone(),
        "instance-type" => asks.with.instance_type.name.to_owned(),
        "ami-id" => asks.with.image.clone(),
        "ami-launch-index" => asks.launch_index.to_string(),
        "reservation-id" => asks.with.reservation.id.clone(),
        "local-ipv4" => asks.private_ip()?.to_string(),
        "public-ipv4" => asks.public_ip?.to_string(),
        "local-hostname" | "hostname" => asks.private_dns().to_owned(),
        "placement/availability-zone" => asks.zone.clone(),
        "placement/region" => region.settings.region.clone(),
        "placement/group-name" => asks.group.as_ref()?.1.clone(),
        "placement/partition-number" => asks.partition?.to_string(),
        "instance-life-cycle" => {
            let market = if asks.with.spot.is_some() { "spot" } else { "on-demand" };
            market.to_owned()
        }
        "spot/instance-action" => {
            let notice = region.spot_notice(&asks.id)?;
            json!({"action": notice.action, "time": seconds(notice.at)}).to_string()
        }
        "spot/termination-time" => {
            seconds(region.spot_notice(&asks.id).filter(|n| n.action == "terminate")?.at)
        }
        "events/recommendations/rebalance" => {
            json!({"noticeTime": seconds(region.rebalance_recommended(&asks.id)?)}).to_string()
        }
        "events/maintenance/scheduled" => {
            let events = region.scheduled_events(&asks.id).iter().filter(|event| event.active);
            json!(events.map(scheduled).collect::<Vec<_>>()).to_string()
        }
        "events/maintenance/history" => {
            let events = region.scheduled_events(&asks.id).iter().filter(|event| !event.active);
            json!(events.map(scheduled).collect::<Vec<_>>()).to_string()
        }
        _ => return None,
    })
}

fn scheduled(event: &ScheduledEvent) -> serde_json::Value {
    let written = |time: Timestamp| time.strftime("%-d %b %Y %H:%M:%S GMT").to_string();
    let prefix = if event.active { "" } else { "[Canceled] " };
    json!({
        "NotBefore": written(event.not_before),
        "NotAfter": written(event.not_after),
        "Code": event.code.as_str(),
        "Description": format!("{prefix}{}", event.description),
        "EventId": event.id,
        "State": if event.active { "active" } else { "canceled" },
    })
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn plain(status: StatusCode, text: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::copy_from_slice(text.as_bytes()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
