//! Volumes.

use std::borrow::Cow;

use super::tag_set;
use crate::aws::{
    model::{
        Outcome,
        tags::Tags,
        volumes::{self, Volume},
    },
    wire::{
        Call,
        filter::{Filtered, Filters},
        page::{Page, Rules},
        xml::Xml,
    },
};

pub(super) fn describe(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let ids = scope.list("VolumeId");
    let filters = Filters::read::<Volume>(&scope)?;
    let rules = Rules { action: "DescribeVolumes", fewest: 5, most: 1000, ids: "volumeSet" };
    let page = Page::read(&scope, rules, !ids.is_empty())?;
    call.ready()?;
    let mut seen: Vec<&Volume> =
        call.region.volumes.values().filter_map(|volume| volume.seen(call.now)).collect();
    if let Some(id) = ids.iter().find(|id| !seen.iter().any(|volume| volume.id == **id)) {
        return Err(volumes::unknown(id));
    }
    seen.retain(|volume| (ids.is_empty() || ids.contains(&volume.id)) && filters.admit(*volume));
    seen.sort_by_key(|volume| volume.sequence);
    let (page, next) = page.cut(seen.into_iter(), |volume| format!("{:020}", volume.sequence));
    let mut xml = Xml::default();
    xml.items("volumeSet", page, |xml, volume| {
        xml.text("volumeId", &volume.id);
        xml.text("size", volume.size_gib);
        xml.text("snapshotId", volume.snapshot.as_deref().unwrap_or_default());
        xml.text("availabilityZone", &volume.zone);
        xml.text("status", volume.state());
        xml.time("createTime", volume.created);
        xml.items("attachmentSet", &volume.attachment, |xml, (instance, attached)| {
            xml.text("volumeId", &volume.id);
            xml.text("instanceId", instance);
            xml.text("device", &attached.device);
            xml.text("status", "attached");
            xml.time("attachTime", attached.since);
            xml.text("deleteOnTermination", attached.delete_on_termination);
        });
        tag_set(xml, &volume.tags);
        xml.text("volumeType", &volume.kind);
        xml.maybe("iops", volume.iops);
        xml.maybe("throughput", volume.throughput);
        xml.text("encrypted", volume.encrypted);
        xml.maybe("kmsKeyId", volume.kms_key.as_ref());
        xml.text("multiAttachEnabled", false);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

pub(super) fn delete(call: &mut Call<'_>) -> Outcome<Xml> {
    let id = call.scope().required("VolumeId")?;
    call.ready()?;
    call.region.delete_volume(call.now, &id)?;
    let mut xml = Xml::default();
    xml.text("return", true);
    Ok(xml)
}

impl Filtered for Volume {
    const NAMES: &'static [&'static str] = &[
        "attachment.delete-on-termination",
        "attachment.device",
        "attachment.instance-id",
        "attachment.status",
        "availability-zone",
        "encrypted",
        "size",
        "snapshot-id",
        "status",
        "volume-id",
        "volume-type",
    ];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        if let Some(name) = name.strip_prefix("attachment.") {
            let Some((instance, attached)) = &self.attachment else {
                return Vec::new();
            };
            return vec![match name {
                "delete-on-termination" => attached.delete_on_termination.to_string().into(),
                "device" => attached.device.as_str().into(),
                "instance-id" => instance.as_str().into(),
                _ => "attached".into(),
            }];
        }
        vec![match name {
            "availability-zone" => self.zone.as_str().into(),
            "encrypted" => self.encrypted.to_string().into(),
            "size" => self.size_gib.to_string().into(),
            "snapshot-id" => self.snapshot.as_deref().unwrap_or_default().into(),
            "status" => self.state().into(),
            "volume-type" => self.kind.as_str().into(),
            _ => self.id.as_str().into(),
        }]
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
