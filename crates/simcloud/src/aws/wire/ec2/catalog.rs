//! Images, instance types and key pairs.

use std::borrow::Cow;

use super::tag_set;
use crate::aws::{
    model::{
        ApiError, Outcome,
        catalog::{Image, KeyPair},
        launch,
        tags::Tags,
        types::{self, InstanceType},
    },
    wire::{
        Call,
        filter::{Filtered, Filters},
        page::{Page, Rules},
        xml::Xml,
    },
};

pub(super) fn images(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let (ids, owners) = (scope.list("ImageId"), scope.list("Owner"));
    scope.list("ExecutableBy");
    scope.flag("IncludeDeprecated")?;
    scope.flag("IncludeDisabled")?;
    let filters = Filters::read::<Image>(&scope)?;
    let rules = Rules { action: "DescribeImages", fewest: 1, most: 1000, ids: "imagesSet" };
    let page = Page::read(&scope, rules, !ids.is_empty())?;
    call.ready()?;
    if let Some(unknown) = ids.iter().find(|id| !call.region.images.contains_key(*id)) {
        return Err(launch::unknown_image(unknown));
    }
    let account = &call.region.settings.account;
    let owned = |image: &Image| {
        owners.is_empty()
            || owners
                .iter()
                .any(|owner| *owner == image.owner || (owner == "self" && image.owner == *account))
    };
    let found = call
        .region
        .images
        .values()
        .filter(|image| ids.is_empty() || ids.contains(&image.id))
        .filter(|image| owned(image) && filters.admit(*image));
    let (images, next) = page.cut(found, |image| image.id.clone());
    let mut xml = Xml::default();
    xml.items("imagesSet", images, image);
    xml.maybe("nextToken", next);
    Ok(xml)
}

fn image(xml: &mut Xml, image: &Image) {
    xml.text("imageId", &image.id);
    xml.text("imageLocation", format_args!("{}/{}", image.owner, image.name));
    xml.text("imageState", &image.state);
    xml.text("imageOwnerId", &image.owner);
    xml.text("creationDate", &image.created);
    xml.text("isPublic", image.public);
    xml.text("architecture", &image.architecture);
    xml.text("imageType", "machine");
    xml.text("name", &image.name);
    xml.text("rootDeviceType", "ebs");
    xml.text("rootDeviceName", &image.root_device);
    xml.items("blockDeviceMapping", [()], |xml, ()| {
        xml.text("deviceName", &image.root_device);
        xml.node("ebs", |xml| {
            xml.text("snapshotId", &image.snapshot);
            xml.text("volumeSize", image.size_gib);
            xml.text("deleteOnTermination", true);
            xml.text("volumeType", "gp2");
            xml.text("encrypted", false);
        });
    });
    xml.text("virtualizationType", "hvm");
    tag_set(xml, &image.tags);
    xml.text("hypervisor", "xen");
    xml.text("enaSupport", true);
    xml.text("platformDetails", "Linux/UNIX");
    xml.text("usageOperation", "RunInstances");
}

impl Filtered for Image {
    const NAMES: &'static [&'static str] = &[
        "architecture",
        "creation-date",
        "description",
        "ena-support",
        "hypervisor",
        "image-id",
        "image-type",
        "is-public",
        "name",
        "owner-alias",
        "owner-id",
        "platform",
        "root-device-name",
        "root-device-type",
        "state",
        "virtualization-type",
    ];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        let value: Cow<'_, str> = match name {
            "architecture" => self.architecture.as_str().into(),
            "creation-date" => self.created.as_str().into(),
            "ena-support" => "true".into(),
            "hypervisor" => "xen".into(),
            "image-id" => self.id.as_str().into(),
            "image-type" => "machine".into(),
            "is-public" => self.public.to_string().into(),
            "name" => self.name.as_str().into(),
            "owner-id" => self.owner.as_str().into(),
            "root-device-name" => self.root_device.as_str().into(),
            "root-device-type" => "ebs".into(),
            "state" => self.state.as_str().into(),
            "virtualization-type" => "hvm".into(),
            _ => return Vec::new(),
        };
        vec![value]
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}

pub(super) fn instance_types(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let names = scope.list("InstanceType");
    scope.flag("IncludeUnsupportedInRegion")?;
    let filters = Filters::read::<InstanceType>(&scope)?;
    let rules =
        Rules { action: "DescribeInstanceTypes", fewest: 5, most: 100, ids: "instanceTypeSet" };
    let page = Page::read(&scope, rules, !names.is_empty())?;
    call.ready()?;
    let unknown: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| types::find(name).is_none()).collect();
    if !unknown.is_empty() {
        return Err(ApiError::client(
            "InvalidInstanceType",
            format!("The following supplied instance types do not exist: [{}]", unknown.join(", ")),
        ));
    }
    let found = types::all()
        .iter()
        .filter(|of| names.is_empty() || names.iter().any(|name| name == of.name))
        .filter(|of| filters.admit(*of));
    let (page, next) = page.cut(found, |of| of.name.to_owned());
    let mut xml = Xml::default();
    xml.items("instanceTypeSet", page, instance_type);
    xml.maybe("nextToken", next);
    Ok(xml)
}

fn instance_type(xml: &mut Xml, of: &InstanceType) {
    let texts = |xml: &mut Xml, name: &str, values: &[&str]| {
        xml.items(name, values, Xml::bare);
    };
    xml.text("instanceType", of.name);
    xml.text("currentGeneration", of.current());
    xml.text("freeTierEligible", matches!(of.name, "t2.micro" | "t3.micro"));
    texts(xml, "supportedUsageClasses", &of.usage_classes);
    texts(xml, "supportedRootDeviceTypes", &["ebs"]);
    texts(xml, "supportedVirtualizationTypes", &["hvm"]);
    xml.text("bareMetal", of.metal());
    xml.maybe("hypervisor", of.hypervisor());
    xml.node("processorInfo", |xml| {
        texts(xml, "supportedArchitectures", &of.architectures);
        xml.text("manufacturer", of.manufacturer);
    });
    xml.node("vCpuInfo", |xml| {
        xml.text("defaultVCpus", of.vcpus);
        xml.text("defaultCores", of.cores);
        xml.text("defaultThreadsPerCore", of.vcpus / of.cores.max(1));
    });
    xml.node("memoryInfo", |xml| xml.text("sizeInMiB", of.memory_mib));
    xml.text("instanceStorageSupported", of.local_disks());
    xml.node("networkInfo", |xml| {
        xml.text("networkPerformance", of.network);
        xml.text("maximumNetworkInterfaces", of.interfaces);
        xml.text("ipv4AddressesPerInterface", of.addresses_per_interface);
        xml.text("ipv6AddressesPerInterface", of.addresses_per_interface);
        xml.text("ipv6Supported", true);
        xml.text("efaSupported", of.efa_interfaces > 0);
        if of.efa_interfaces > 0 {
            xml.node("efaInfo", |xml| xml.text("maximumEfaInterfaces", of.efa_interfaces));
        }
    });
    if let Some(gpu) = of.gpu {
        xml.node("gpuInfo", |xml| {
            xml.items("gpus", [gpu], |xml, gpu| {
                xml.text("name", gpu.name);
                xml.text("manufacturer", gpu.manufacturer);
                xml.text("count", gpu.count);
                xml.node("memoryInfo", |xml| xml.text("sizeInMiB", gpu.memory_mib));
            });
            xml.text("totalGpuMemoryInMiB", gpu.memory_mib * gpu.count);
        });
    }
    let strategies: Vec<&str> = of.strategies.iter().map(|strategy| strategy.as_str()).collect();
    xml.node("placementGroupInfo", |xml| texts(xml, "supportedStrategies", &strategies));
    xml.text("burstablePerformanceSupported", of.burstable());
    xml.text("dedicatedHostsSupported", of.dedicated_hosts());
}

impl Filtered for InstanceType {
    const NAMES: &'static [&'static str] = &[
        "bare-metal",
        "burstable-performance-supported",
        "current-generation",
        "dedicated-hosts-supported",
        "hypervisor",
        "instance-storage-supported",
        "instance-type",
        "memory-info.size-in-mib",
        "network-info.efa-supported",
        "processor-info.supported-architecture",
        "supported-usage-class",
        "vcpu-info.default-vcpus",
        "vcpu-info.default-cores",
    ];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        let value: Cow<'_, str> = match name {
            "bare-metal" => self.metal().to_string().into(),
            "burstable-performance-supported" => self.burstable().to_string().into(),
            "current-generation" => self.current().to_string().into(),
            "dedicated-hosts-supported" => self.dedicated_hosts().to_string().into(),
            "hypervisor" => self.hypervisor().unwrap_or_default().into(),
            "instance-storage-supported" => self.local_disks().to_string().into(),
            "instance-type" => self.name.into(),
            "memory-info.size-in-mib" => self.memory_mib.to_string().into(),
            "network-info.efa-supported" => (self.efa_interfaces > 0).to_string().into(),
            "processor-info.supported-architecture" => {
                return self.architectures.iter().map(|a| (*a).into()).collect();
            }
            "supported-usage-class" => {
                return self.usage_classes.iter().map(|u| (*u).into()).collect();
            }
            "vcpu-info.default-vcpus" => self.vcpus.to_string().into(),
            "vcpu-info.default-cores" => self.cores.to_string().into(),
            _ => return Vec::new(),
        };
        vec![value]
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }
}

/// A type at a place.
struct Offering {
    name: &'static str,
    location: String,
}

pub(super) fn offerings(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let kind = scope.text("LocationType").unwrap_or_else(|| "region".to_owned());
    let filters = Filters::read::<Offering>(&scope)?;
    let rules = Rules { action: "DescribeInstanceTypeOfferings", fewest: 5, most: 1000, ids: "" };
    let page = Page::read(&scope, rules, false)?;
    call.ready()?;
    let region = &*call.region;
    let places: Vec<(String, String)> = match kind.as_str() {
        "region" => vec![(region.settings.region.clone(), String::new())],
        "availability-zone" => {
            region.zones.iter().map(|z| (z.name.clone(), z.name.clone())).collect()
        }
        "availability-zone-id" => {
            region.zones.iter().map(|z| (z.id.clone(), z.name.clone())).collect()
        }
        other => {
            return Err(ApiError::invalid(format!(
                "Value ({other}) for parameter locationType is invalid."
            )));
        }
    };
    let found = types::all().iter().flat_map(|of| {
        places
            .iter()
            .filter(|(_, zone)| !region.not_offered.contains(&(zone.clone(), of.name.to_owned())))
            .map(|(location, _)| Offering { name: of.name, location: location.clone() })
    });
    let found = found.filter(|offering| filters.admit(offering));
    let (page, next) = page.cut(found, |o| format!("{} {}", o.name, o.location));
    let mut xml = Xml::default();
    xml.items("instanceTypeOfferingSet", page, |xml, offering| {
        xml.text("instanceType", offering.name);
        xml.text("locationType", &kind);
        xml.text("location", &offering.location);
    });
    xml.maybe("nextToken", next);
    Ok(xml)
}

impl Filtered for Offering {
    const NAMES: &'static [&'static str] = &["instance-type", "location"];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        vec![if name == "location" { self.location.as_str().into() } else { self.name.into() }]
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }
}

pub(super) fn key_pairs(call: &mut Call<'_>) -> Outcome<Xml> {
    let scope = call.scope();
    let (names, ids) = (scope.list("KeyName"), scope.list("KeyPairId"));
    scope.flag("IncludePublicKey")?;
    let filters = Filters::read::<KeyPair>(&scope)?;
    call.ready()?;
    let keys = &call.region.keys;
    let missing = names.iter().find(|name| !keys.contains_key(*name));
    let missing = missing.or(ids.iter().find(|id| !keys.values().any(|key| key.id == **id)));
    if let Some(missing) = missing {
        return Err(ApiError::client(
            "InvalidKeyPair.NotFound",
            format!("The key pair '{missing}' does not exist"),
        ));
    }
    let found = keys
        .values()
        .filter(|key| names.is_empty() || names.contains(&key.name))
        .filter(|key| ids.is_empty() || ids.contains(&key.id))
        .filter(|key| filters.admit(*key));
    let mut xml = Xml::default();
    xml.items("keySet", found, |xml, key| {
        xml.text("keyPairId", &key.id);
        xml.text("keyName", &key.name);
        xml.text("keyFingerprint", &key.fingerprint);
        xml.text("keyType", "rsa");
        tag_set(xml, &key.tags);
    });
    Ok(xml)
}

impl Filtered for KeyPair {
    const NAMES: &'static [&'static str] = &["key-pair-id", "fingerprint", "key-name"];

    fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        vec![
            match name {
                "key-pair-id" => self.id.as_str(),
                "fingerprint" => self.fingerprint.as_str(),
                _ => self.name.as_str(),
            }
            .into(),
        ]
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
