//! Spot requests.

use std::borrow::Cow;

use super::tag_set;
use crate::aws::{
    model::{ApiError, Outcome, spot::SpotRequest, tags::Tags},
    wire::{
        Call,
        filter::{Filtered, Filters},
        page::{Page, Rules},
        xml::Xml,
    },
};

pub(super) fn describe(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let ids = scope.list("SpotInstanceRequestId");
    let filters = Filters::read::<SpotRequest>(&scope)?;
    let rules = Rules {
        action: "DescribeSpotInstanceRequests",
        fewest: 5,
        most: 1000,
        ids: "spotInstanceRequestIdSet",
    };
    let page = Page::read(&scope, rules, !ids.is_empty())?;
    call.ready()?;
    let seen: Vec<&SpotRequest> =
        call.region.spot_requests.values().filter_map(|request| request.seen(call.now)).collect();
    known(&ids, &seen)?;
    let found = seen
        .into_iter()
        .filter(|request| ids.is_empty() || ids.contains(&request.id))
        .filter(|request| filters.admit(*request));
    let (page, next) = page.cut(found, |request| request.id.clone());
    let mut xml = Xml::default();
    xml.items("spotInstanceRequestSet", page, |xml, request| {
        xml.text("spotInstanceRequestId", &request.id);
        xml.text("spotPrice", &request.price);
        xml.text("type", if request.options.persistent { "persistent" } else { "one-time" });
        xml.text("state", request.state);
        xml.node("status", |xml| {
            xml.text("code", request.status.0);
            xml.time("updateTime", request.updated);
            xml.text("message", request.status.1);
        });
        xml.node("launchSpecification", |xml| xml.text("instanceType", request.instance_type));
        xml.text("instanceId", &request.instance);
        xml.time("createTime", request.created);
        xml.text("productDescription", "Linux/UNIX");
        xml.text("launchedAvailabilityZone", &request.zone);
        xml.text("instanceInterruptionBehavior", &request.options.interruption);
        tag_set(xml, &request.tags);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

pub(super) fn cancel(call: &mut Call<'_>) -> Outcome<Xml> {
    let ids = call.scope().list("SpotInstanceRequestId");
    if ids.is_empty() {
        return Err(ApiError::missing("SpotInstanceRequestId"));
    }
    call.ready()?;
    let seen: Vec<&SpotRequest> =
        call.region.spot_requests.values().filter_map(|request| request.seen(call.now)).collect();
    known(&ids, &seen)?;
    let mut cancelled = Vec::new();
    for id in &ids {
        if let Some(state) = call.region.cancel_spot_request(call.now, id) {
            cancelled.push((id, state));
        }
    }
    let mut xml = Xml::default();
    xml.items("spotInstanceRequestSet", cancelled, |xml, (id, state)| {
        xml.text("spotInstanceRequestId", id);
        xml.text("state", state);
    });
    Ok(xml)
}

fn known(ids: &[String], seen: &[&SpotRequest]) -> Outcome<()> {
    match ids.iter().find(|id| !seen.iter().any(|request| request.id == **id)) {
        None => Ok(()),
        Some(id) => Err(ApiError::client(
            "InvalidSpotInstanceRequestID.NotFound",
            format!("The spot instance request ID '{id}' does not exist"),
        )),
    }
}

impl Filtered for SpotRequest {
    const NAMES: &'static [&'static str] = &[
        "instance-id",
        "launch.instance-type",
        "launched-availability-zone",
        "spot-instance-request-id",
        "state",
        "status-code",
        "type",
    ];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        vec![
            match name {
                "instance-id" => self.instance.as_str(),
                "launch.instance-type" => self.instance_type,
                "launched-availability-zone" => self.zone.as_str(),
                "state" => self.state,
                "status-code" => self.status.0,
                "type" if self.options.persistent => "persistent",
                "type" => "one-time",
                _ => self.id.as_str(),
            }
            .into(),
        ]
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
