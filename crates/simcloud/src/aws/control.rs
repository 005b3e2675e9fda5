//! The control surface: JSON under `/_fleetwright/`, for `fleetwright sim` and for tests that
//! are not written in Rust.
//!
//! | request | does |
//! |---|---|
//! | `GET instances` | every instance as it is |
//! | `POST instances/<id>` `{"strike": "interrupt"}` | terminate, fail, stop, interrupt, rebalance, freeze, thaw |
//! | `POST instances/<id>/events` `{"code", "notBefore"}`, `DELETE instances/<id>/events` | scheduled events |
//! | `metadata/<id>/latest/…` | the metadata service of an instance |
//! | `GET groups` | every placement group as it is |
//! | `GET capacity`, `POST capacity` (a limit), `DELETE capacity` (a limit, or all) | capacity |
//! | `POST spot-price` `{"zone", "instanceType", "price"}` | sets a spot price |
//! | `GET faults`, `POST faults` (a fault), `DELETE faults` | faults |
//! | `PUT denied` (a list such as `["ec2:RunInstances"]`) | what callers may not do |
//! | `GET counts`, `GET calls`, `DELETE calls` | the audit log |
//! | `GET operations` | every call that is served |
//! | `GET settings`, `PUT settings`, `PATCH settings` (a merge patch) | delays, lag, quotas, throttling |

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    faults::Fault,
    model::{
        Region, capacity::Limit, groups::PlacementGroup, instance::Instance, lifecycle::Strike,
        maintenance::Code, settings::Settings, types,
    },
    service::Aws,
    wire,
};

/// Where the control surface is.
pub const PREFIX: &str = "/_fleetwright/";

/// A refusal: the status and why.
type Refusal = (StatusCode, String);

pub(super) fn answer(aws: &Aws, path: &str, request: &Request<Bytes>) -> Response<Bytes> {
    let (status, body) = match route(aws, path.trim_end_matches('/'), request) {
        Ok(value) => (StatusCode::OK, value),
        Err((status, message)) => (status, json!({ "error": message })),
    };
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

fn route(aws: &Aws, path: &str, request: &Request<Bytes>) -> Result<Value, Refusal> {
    let method = request.method();
    match (path, method) {
        ("instances", &Method::GET) => {
            Ok(aws.with(|region, _| region.instances().map(|it| instance(region, it)).collect()))
        }
        ("groups", &Method::GET) => Ok(aws.with(|region, _| {
            region.placement_groups().map(|group| placement_group(region, group)).collect()
        })),
        ("capacity", &Method::GET) => Ok(aws.with(|region, _| {
            let limits = region.capacity.limits().iter();
            limits.map(|l| json!({ "limit": l, "inUse": region.capacity.in_use(l) })).collect()
        })),
        ("capacity", &Method::POST) => {
            let limit: Limit = body(request)?;
            aws.with(|region, now| region.limit_capacity(now, &limit));
            Ok(json!({}))
        }
        ("capacity", &Method::DELETE) => {
            let limit: Option<Limit> =
                if request.body().is_empty() { None } else { Some(body(request)?) };
            aws.with(|region, _| region.capacity.unlimit(limit.as_ref()));
            Ok(json!({}))
        }
        ("spot-price", &Method::POST) => {
            let set: SpotPrice = body(request)?;
            let Some(micros) = types::micros(&set.price) else {
                return Err((StatusCode::BAD_REQUEST, format!("not a price: {}", set.price)));
            };
            if types::find(&set.instance_type).is_none() {
                let message = format!("there is no instance type {}", set.instance_type);
                return Err((StatusCode::BAD_REQUEST, message));
            }
            aws.with(|region, now| {
                region.set_spot_price(now, &set.zone, &set.instance_type, micros);
            });
            Ok(json!({}))
        }
        ("faults", &Method::GET) => Ok(json!(aws.faults())),
        ("faults", &Method::POST) => {
            aws.fault(body::<Fault>(request)?);
            Ok(json!({}))
        }
        ("faults", &Method::DELETE) => {
            aws.clear_faults();
            Ok(json!({}))
        }
        ("denied", &Method::PUT) => {
            let actions: BTreeSet<String> = body(request)?;
            aws.with_keys(|keys| keys.deny(&actions));
            Ok(json!({}))
        }
        ("counts", &Method::GET) => Ok(json!({ "calls": aws.counts(), "errors": aws.errors() })),
        ("operations", &Method::GET) => Ok(wire::served()
            .map(|(version, action)| json!({ "version": version, "action": action }))
            .collect()),
        ("calls", &Method::GET) => Ok(json!(aws.calls())),
        ("calls", &Method::DELETE) => {
            aws.clear_calls();
            Ok(json!({}))
        }
        ("settings", &Method::GET) => Ok(aws.with(|region, _| json!(region.settings))),
        ("settings", &Method::PUT) => {
            let settings: Settings = body(request)?;
            aws.with(|region, _| region.settings = settings);
            Ok(json!({}))
        }
        ("settings", &Method::PATCH) => {
            let patch: Value = body(request)?;
            aws.with(|region, _| {
                let mut settings = json!(region.settings);
                merge(&mut settings, patch);
                region.settings = serde_json::from_value::<Settings>(settings).map_err(bad)?;
                Ok(json!(region.settings))
            })
        }
        (_, &Method::POST | &Method::DELETE)
            if path.starts_with("instances/") && path.ends_with("/events") =>
        {
            let id = path.trim_start_matches("instances/").trim_end_matches("/events");
            events(aws, id, request)
        }
        (_, &Method::POST) if path.starts_with("instances/") => {
            let id = &path["instances/".len()..];
            let wanted: StrikeAt = body(request)?;
            let on_demand = |it: &Instance| it.with.spot.is_none();
            if matches!(wanted.strike, Strike::Interrupt | Strike::Rebalance)
                && aws.with(|region, _| region.instance(id).is_some_and(on_demand))
            {
                return Err((StatusCode::BAD_REQUEST, format!("{id} is no spot instance")));
            }
            match aws.with(|region, now| region.strike(now, id, wanted.strike)) {
                Some(change) => Ok(json!({
                    "id": change.id,
                    "previous": change.previous,
                    "current": change.current,
                    "interruption":
                        aws.with(|region, _| region.spot_notice(id).map(|notice| notice.at)),
                })),
                None => Err((StatusCode::NOT_FOUND, format!("there is no instance {id}"))),
            }
        }
        _ => Err((StatusCode::NOT_FOUND, format!("there is no {method} {PREFIX}{path}"))),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SpotPrice {
    zone: String,
    instance_type: String,
    price: String,
}

/// Plans something for an instance, or gives it up.
fn events(aws: &Aws, id: &str, request: &Request<Bytes>) -> Result<Value, Refusal> {
    let unknown = || (StatusCode::NOT_FOUND, format!("there is no instance {id}"));
    if request.method() == Method::DELETE {
        let found = aws.with(|region, _| region.cancel_events(id));
        return if found { Ok(json!({})) } else { Err(unknown()) };
    }
    let Planned { code, not_before, not_after } = body(request)?;
    let not_after = not_after.unwrap_or(not_before);
    let made = aws.with(|region, _| region.schedule_event(id, code, not_before, not_after));
    made.map(|event| json!({ "eventId": event })).ok_or_else(unknown)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Planned {
    code: Code,
    not_before: Timestamp,
    not_after: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrikeAt {
    strike: Strike,
}

fn bad(error: impl std::fmt::Display) -> Refusal {
    (StatusCode::BAD_REQUEST, error.to_string())
}

fn body<T: DeserializeOwned>(request: &Request<Bytes>) -> Result<T, Refusal> {
    serde_json::from_slice(request.body()).map_err(bad)
}

/// RFC 7386.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    if let Value::Object(target) = target {
        for (key, value) in patch {
            if value.is_null() {
                target.remove(&key);
            } else {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
    }
}

fn instance(region: &Region, it: &Instance) -> Value {
    json!({
        "id": it.id,
        "state": it.state,
        "instanceType": it.with.instance_type.name,
        "zone": it.zone,
        "privateIp": it.private_ip(),
        "privateDnsName": it.private_dns(),
        "group": it.group.as_ref().map(|(_, name)| name),
        "partition": it.partition,
        "spot": it.with.spot.is_some(),
        "interruption": region.spot_notice(&it.id).map(|notice| notice.at),
        "tenancy": it.with.tenancy,
        "host": it.host,
        "launched": it.launched,
        "launchIndex": it.launch_index,
        "clientToken": it.with.reservation.token,
        "reason": it.reason.as_ref().map(|reason| &reason.message),
        "tags": it.tags,
    })
}

fn placement_group(region: &Region, group: &PlacementGroup) -> Value {
    let members: Vec<&str> = region
        .instances()
        .filter(|i| i.group.as_ref().is_some_and(|(id, _)| *id == group.id))
        .map(|i| i.id.as_str())
        .collect();
    json!({
        "id": group.id,
        "name": group.name,
        "strategy": group.strategy.as_str(),
        "partitions": group.partitions,
        "state": group.state.as_str(),
        "members": members,
        "tags": group.tags,
    })
}
