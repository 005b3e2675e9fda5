//! Placement groups.

use std::borrow::Cow;

use super::{tag_set, tags_for};
use crate::aws::{
    model::{
        ApiError, Lagged, Outcome, Region,
        groups::{NewGroup, PlacementGroup},
        tags::Tags,
    },
    wire::{
        Call,
        filter::{Filtered, Filters},
        xml::Xml,
    },
};

pub(super) fn create(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let new = NewGroup {
        name: scope.text("GroupName").unwrap_or_default(),
        strategy: scope.text("Strategy"),
        partitions: scope.number("PartitionCount")?,
        spread_level: scope.text("SpreadLevel"),
        tags: tags_for(&scope, "placement-group")?,
    };
    call.ready()?;
    let made = call.region.create_group(call.now, new)?;
    let mut xml = Xml::default();
    xml.text("return", true);
    xml.node("placementGroup", |xml| group(xml, call.region, &made));
    Ok(xml)
}

pub(super) fn describe(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let (names, ids) = (scope.list("GroupName"), scope.list("GroupId"));
    let filters = Filters::read::<PlacementGroup>(&scope)?;
    call.ready()?;
    let seen: Vec<&PlacementGroup> =
        call.region.groups.values().filter_map(|group| group.seen(call.now)).collect();
    let unknown = |what: &String| {
        ApiError::client(
            "InvalidPlacementGroup.Unknown",
            format!("The Placement Group '{what}' is unknown."),
        )
    };
    if let Some(name) = names.iter().find(|name| !seen.iter().any(|g| g.name == **name)) {
        return Err(unknown(name));
    }
    if let Some(id) = ids.iter().find(|id| !seen.iter().any(|g| g.id == **id)) {
        return Err(unknown(id));
    }
    let wanted = seen.into_iter().filter(|group| {
        let named = names.is_empty() && ids.is_empty();
        (named || names.contains(&group.name) || ids.contains(&group.id)) && filters.admit(*group)
    });
    let mut xml = Xml::default();
    xml.items("placementGroupSet", wanted, |xml, one| group(xml, call.region, one));
    Ok(xml)
}

pub(super) fn delete(call: &mut Call<'_>) -> Outcome<Xml> {
    let name = call.scope().required("GroupName")?;
    call.ready()?;
    // A group may be named by its identifier, too.
    let by_id = call.region.groups.values().map(Lagged::latest).find(|group| group.id == name);
    let name = by_id.map_or(name, |group| group.name.clone());
    call.region.delete_group(call.now, &name)?;
    let mut xml = Xml::default();
    xml.text("return", true);
    Ok(xml)
}

fn group(xml: &mut Xml, region: &Region, group: &PlacementGroup) {
    xml.text("groupName", &group.name);
    xml.text("state", group.state.as_str());
    xml.text("strategy", group.strategy.as_str());
    xml.maybe("partitionCount", group.partitions);
    xml.text("groupId", &group.id);
    tag_set(xml, &group.tags);
    let settings = &region.settings;
    xml.text(
        "groupArn",
        format_args!(
            "arn:aws:ec2:{}:{}:placement-group/{}",
            settings.region, settings.account, group.name
        ),
    );
    xml.maybe("spreadLevel", group.spread_level.as_ref());
}

impl Filtered for PlacementGroup {
    const NAMES: &'static [&'static str] =
        &["group-name", "group-id", "state", "strategy", "spread-level"];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        match name {
            "group-name" => vec![self.name.as_str().into()],
            "group-id" => vec![self.id.as_str().into()],
            "state" => vec![self.state.as_str().into()],
            "strategy" => vec![self.strategy.as_str().into()],
            "spread-level" => self.spread_level.iter().map(|l| l.as_str().into()).collect(),
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
