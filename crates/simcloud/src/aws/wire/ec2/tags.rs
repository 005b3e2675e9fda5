//! Tags.

use std::borrow::Cow;

use super::tag_list;
use crate::aws::{
    model::{
        ApiError, Outcome, resources,
        tags::{self, Tags},
    },
    wire::{
        Call,
        filter::{Filtered, Filters},
        page::{Page, Rules},
        xml::Xml,
    },
};

pub(super) fn create(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let ids = scope.list("ResourceId");
    let new = tags::checked(tag_list(&scope)?)?;
    if ids.is_empty() {
        return Err(ApiError::missing("ResourceId"));
    }
    if new.is_empty() {
        return Err(ApiError::missing("Tag"));
    }
    call.ready()?;
    call.region.create_tags(call.now, &ids, &new)?;
    Ok(done())
}

pub(super) fn delete(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let ids = scope.list("ResourceId");
    if ids.is_empty() {
        return Err(ApiError::missing("ResourceId"));
    }
    let gone: Vec<(String, Option<String>)> = scope
        .entries("Tag")
        .iter()
        .map(|tag| Ok((tag.required("Key")?, tag.text("Value"))))
        .collect::<Outcome<_>>()?;
    call.ready()?;
    call.region.delete_tags(call.now, &ids, &gone)?;
    Ok(done())
}

fn done() -> Xml {
    let mut xml = Xml::default();
    xml.text("return", true);
    xml
}

/// A tag of a resource, as DescribeTags lists it.
struct Tag<'a> {
    resource: &'a str,
    key: &'a str,
    value: &'a str,
    /// The same, for filters that say `tag:key`.
    alone: Tags,
}

pub(super) fn describe(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let filters = Filters::read::<Tag<'_>>(&scope)?;
    let rules = Rules { action: "DescribeTags", fewest: 5, most: 1000, ids: "" };
    let page = Page::read(&scope, rules, false)?;
    call.ready()?;
    let all = call.region.all_tags(call.now);
    let mut found: Vec<Tag<'_>> = all
        .iter()
        .flat_map(|(resource, tags)| {
            tags.iter().map(move |(key, value)| Tag {
                resource,
                key,
                value,
                alone: [(key.clone(), value.clone())].into(),
            })
        })
        .filter(|tag| filters.admit(tag))
        .collect();
    let key = |tag: &Tag<'_>| format!("{}\n{}", tag.resource, tag.key);
    found.sort_by_key(key);
    let (page, next) = page.cut(found.into_iter(), key);
    let mut xml = Xml::default();
    xml.items("tagSet", page, |xml, tag| {
        xml.text("resourceId", tag.resource);
        xml.text("resourceType", resources::kind_of(tag.resource));
        xml.text("key", tag.key);
        xml.text("value", tag.value);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

impl Filtered for Tag<'_> {
    const NAMES: &'static [&'static str] = &["key", "resource-id", "resource-type", "value"];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        vec![
            match name {
                "key" => self.key,
                "resource-id" => self.resource,
                "resource-type" => resources::kind_of(self.resource),
                _ => self.value,
            }
            .into(),
        ]
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.alone)
    }
}
