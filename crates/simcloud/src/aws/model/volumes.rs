//! EBS volumes: made with an instance, kept or deleted with it.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    Region,
    catalog::Image,
    error::{ApiError, Outcome},
    events::Change,
    ids,
    instance::Attached,
    lag::Lagged,
    tags::Tags,
};

/// A volume.
#[derive(Clone, Debug)]
pub struct Volume {
    /// `vol-…`.
    pub id: String,
    /// The order of creation.
    pub sequence: u64,
    /// Zone.
    pub zone: String,
    /// Size.
    pub size_gib: u32,
    /// gp2, gp3, io1, io2, st1, sc1 or standard.
    pub kind: String,
    /// I/O operations per second, where they can be set.
    pub iops: Option<u32>,
    /// MiB/s, where they can be set.
    pub throughput: Option<u32>,
    /// Encrypted.
    pub encrypted: bool,
    /// Key of the encryption.
    pub kms_key: Option<String>,
    /// `snap-…`.
    pub snapshot: Option<String>,
    /// When it was made.
    pub created: Timestamp,
    /// (instance, device, goes with it, since).
    pub attachment: Option<(String, Attached)>,
    /// Tags.
    pub tags: Tags,
}

impl Volume {
    /// State on the wire.
    pub fn state(&self) -> &'static str {
        if self.attachment.is_some() { "in-use" } else { "available" }
    }
}

/// A block device of a launch.
#[derive(Clone, Debug, Default)]
pub struct BlockDevice {
    /// Device name.
    pub device: Option<String>,
    /// The volume; absent for a virtual device.
    pub ebs: Option<Ebs>,
    /// Suppresses the image's device.
    pub no_device: bool,
    /// `ephemeral0` and so on.
    pub virtual_name: Option<String>,
}

/// The volume of a block device.
#[derive(Clone, Debug, Default)]
pub struct Ebs {
    /// Size.
    pub size_gib: Option<i64>,
    /// Type; gp2 if absent.
    pub kind: Option<String>,
    /// I/O operations per second.
    pub iops: Option<i64>,
    /// MiB/s.
    pub throughput: Option<i64>,
    /// Encrypted.
    pub encrypted: Option<bool>,
    /// Key of the encryption.
    pub kms_key: Option<String>,
    /// `snap-…`.
    pub snapshot: Option<String>,
    /// Goes with the instance; yes if absent.
    pub delete_on_termination: Option<bool>,
}

/// A volume to be made at a device, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    device: String,
    size_gib: u32,
    kind: String,
    iops: Option<u32>,
    throughput: Option<u32>,
    encrypted: bool,
    kms_key: Option<String>,
    snapshot: Option<String>,
    delete_on_termination: bool,
}

/// The volumes of a launch: the image's own, as the request changes it, and the request's.
pub(super) fn planned(image: &Image, devices: &[BlockDevice]) -> Outcome<Vec<Planned>> {
    let mut seen = Vec::new();
    let mut volumes = Vec::new();
    let mut root = Some(Ebs { snapshot: Some(image.snapshot.clone()), ..Ebs::default() });
    for device in devices {
        let Some(name) = device.device.clone() else {
            return Err(ApiError::missing("BlockDeviceMapping.DeviceName"));
        };
        if seen.contains(&name) {
            return Err(mapping(format!(
                "The device '{name}' is used in more than one block-device mapping"
            )));
        }
        seen.push(name.clone());
        if name == image.root_device {
            if device.no_device {
                return Err(mapping("The root device cannot be suppressed.".to_owned()));
            }
            if let Some(ebs) = &device.ebs {
                let snapshot = ebs.snapshot.clone().or(Some(image.snapshot.clone()));
                root = Some(Ebs { snapshot, ..ebs.clone() });
            }
            continue;
        }
        if let Some(ebs) = device.ebs.as_ref().filter(|_| !device.no_device) {
            volumes.push(check(&name, ebs, None)?);
        }
    }
    if let Some(root) = root.take() {
        volumes.insert(0, check(&image.root_device, &root, Some(image))?);
    }
    Ok(volumes)
}

fn mapping(message: String) -> ApiError {
    ApiError::client("InvalidBlockDeviceMapping", message)
}

/// (smallest, largest) size, and (smallest, largest) IOPS where they can be set.
struct Bounds {
    size: (u32, u32),
    iops: Option<(u32, u32)>,
    iops_required: bool,
    throughput: bool,
}

fn bounds(kind: &str) -> Option<Bounds> {
    let plain = |size| Bounds { size, iops: None, iops_required: false, throughput: false };
    Some(match kind {
        "gp2" => plain((1, 16_384)),
        "gp3" => Bounds { iops: Some((3_000, 80_000)), throughput: true, ..plain((1, 65_536)) },
        "io1" => Bounds { iops: Some((100, 64_000)), iops_required: true, ..plain((4, 16_384)) },
        "io2" => Bounds { iops: Some((100, 256_000)), iops_required: true, ..plain((4, 65_536)) },
        "st1" | "sc1" => plain((125, 16_384)),
        "standard" => plain((1, 1_024)),
        _ => return None,
    })
}

fn check(device: &str, ebs: &Ebs, image: Option<&Image>) -> Outcome<Planned> {
    let kind = ebs.kind.clone().unwrap_or_else(|| "gp2".to_owned());
    let Some(bounds) = bounds(&kind) else {
        return Err(ApiError::invalid(format!(
            "Value ({kind}) for parameter volumeType is invalid."
        )));
    };
    let within = |name: &str, value: i64, (low, high): (u32, u32)| {
        u32::try_from(value).ok().filter(|v| (low..=high).contains(v)).ok_or_else(|| {
            ApiError::invalid(format!(
                "Volume {name} of {value} is invalid for volume type {kind}: it must be between \
                 {low} and {high}."
            ))
        })
    };
    let size_gib = match (ebs.size_gib, image) {
        (Some(size), _) => within("size", size, bounds.size)?,
        (None, Some(image)) => image.size_gib,
        (None, None) => {
            return Err(ApiError::client(
                "MissingParameter",
                "The request must contain the parameter size or snapshotId",
            ));
        }
    };
    if let Some(image) = image.filter(|image| size_gib < image.size_gib) {
        return Err(mapping(format!(
            "Volume of size {size_gib}GB is smaller than snapshot '{}', expect size>= {}GB",
            image.snapshot, image.size_gib
        )));
    }
    let iops = match (ebs.iops, bounds.iops) {
        (Some(iops), Some(range)) => Some(within("iops", iops, range)?),
        (Some(_), None) => {
            return Err(ApiError::combination(format!(
                "The parameter iops is not supported for {kind} volumes."
            )));
        }
        (None, Some(_)) if bounds.iops_required => {
            return Err(ApiError::client(
                "MissingParameter",
                format!("The parameter iops must be specified for {kind} volumes."),
            ));
        }
        (None, Some((default, _))) => Some(default),
        (None, None) => None,
    };
    let throughput = match (ebs.throughput, bounds.throughput) {
        (Some(value), true) => Some(within("throughput", value, (125, 2_000))?),
        (Some(_), false) => {
            return Err(ApiError::combination(format!(
                "The parameter throughput is not supported for {kind} volumes."
            )));
        }
        (None, gp3) => gp3.then_some(125),
    };
    let encrypted = ebs.encrypted.unwrap_or(false);
    if ebs.kms_key.is_some() && !encrypted {
        return Err(ApiError::combination(
            "The parameter KmsKeyId requires the parameter Encrypted to be set.",
        ));
    }
    Ok(Planned {
        device: device.to_owned(),
        size_gib,
        kind,
        iops,
        throughput,
        encrypted,
        kms_key: ebs.kms_key.clone(),
        snapshot: ebs.snapshot.clone(),
        delete_on_termination: ebs.delete_on_termination.unwrap_or(true),
    })
}

impl Region {
    /// Makes the volumes of an instance.
    pub(super) fn attach_new(
        &mut self,
        now: Timestamp,
        instance: &str,
        zone: &str,
        planned: &[Planned],
        tags: &Tags,
    ) -> Vec<Attached> {
        let lag = self.settings.lag.after("RunInstances");
        let mut attached = Vec::new();
        for volume in planned {
            let at = Attached {
                device: volume.device.clone(),
                volume: ids::fresh(&self.random, "vol"),
                delete_on_termination: volume.delete_on_termination,
                since: now,
            };
            let made = Volume {
                id: at.volume.clone(),
                sequence: self.next_sequence(),
                zone: zone.to_owned(),
                size_gib: volume.size_gib,
                kind: volume.kind.clone(),
                iops: volume.iops,
                throughput: volume.throughput,
                encrypted: volume.encrypted,
                kms_key: volume.kms_key.clone(),
                snapshot: volume.snapshot.clone(),
                created: now,
                attachment: Some((instance.to_owned(), at.clone())),
                tags: tags.clone(),
            };
            self.volumes.insert(made.id.clone(), Lagged::new(made.clone(), now, lag));
            self.report(now, Change::VolumeCreated(made));
            attached.push(at);
        }
        attached
    }

    /// The instance is terminated: its volumes go, or stay without it.
    pub(super) fn detach_all(&mut self, at: Timestamp, attached: &[Attached]) {
        for volume in attached {
            if volume.delete_on_termination {
                self.volumes.remove(&volume.volume);
                self.report(at, Change::VolumeDeleted(volume.volume.clone()));
            } else if let Some(kept) = self.volumes.get_mut(&volume.volume) {
                kept.change(at, Duration::ZERO, |kept| kept.attachment = None);
                let kept = kept.latest().clone();
                self.report(at, Change::VolumeDetached(kept));
            }
        }
    }

    /// DeleteVolume.
    pub fn delete_volume(&mut self, now: Timestamp, id: &str) -> Outcome<()> {
        let volume = self.volumes.get(id).filter(|v| v.seen(now).is_some());
        let Some(volume) = volume.map(Lagged::latest) else {
            return Err(unknown(id));
        };
        if let Some((instance, _)) = &volume.attachment {
            return Err(ApiError::client(
                "VolumeInUse",
                format!("Volume {id} is currently attached to {instance}"),
            ));
        }
        self.volumes.remove(id);
        self.report(now, Change::VolumeDeleted(id.to_owned()));
        Ok(())
    }
}

/// There is no such volume.
pub(crate) fn unknown(id: &str) -> ApiError {
    if ids::well_formed(id, "vol") {
        let message = format!("The volume '{id}' does not exist.");
        ApiError::client("InvalidVolume.NotFound", message)
    } else {
        ApiError::client(
            "InvalidParameterValue",
            format!("Value ({id}) for parameter volumeId is invalid. Expected: 'vol-...'."),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        Image {
            id: "ami-1".into(),
            name: "n".into(),
            owner: "o".into(),
            architecture: "x86_64".into(),
            created: String::new(),
            state: "available".into(),
            public: false,
            root_device: "/dev/xvda".into(),
            snapshot: "snap-1".into(),
            size_gib: 16,
            tags: Tags::new(),
        }
    }

    fn device(name: &str, ebs: Ebs) -> BlockDevice {
        BlockDevice { device: Some(name.into()), ebs: Some(ebs), ..BlockDevice::default() }
    }

    #[test]
    fn the_image_gives_a_root_volume_and_the_request_changes_it() {
        let plain = planned(&image(), &[]).unwrap();
        assert_eq!((plain[0].size_gib, plain[0].kind.as_str()), (16, "gp2"));
        assert!(plain[0].delete_on_termination);
        let ebs = Ebs { size_gib: Some(120), kind: Some("gp3".into()), ..Ebs::default() };
        let changed =
            planned(&image(), &[device("/dev/sdb", ebs.clone()), device("/dev/xvda", ebs)]);
        let changed = changed.unwrap();
        assert_eq!(changed.len(), 2);
        assert_eq!((changed[0].device.as_str(), changed[0].size_gib), ("/dev/xvda", 120));
        assert_eq!((changed[0].iops, changed[0].throughput), (Some(3000), Some(125)));
        assert_eq!(changed[0].snapshot.as_deref(), Some("snap-1"));
        assert_eq!(changed[1].snapshot, None);
    }

    #[test]
    fn what_is_refused() {
        let ebs = |size, kind: &str, iops, throughput| Ebs {
            size_gib: size,
            kind: Some(kind.into()),
            iops,
            throughput,
            ..Ebs::default()
        };
        for (ebs, code) in [
            (ebs(Some(8), "gp3", None, None), "InvalidBlockDeviceMapping"),
            (ebs(Some(20), "gp9", None, None), "InvalidParameterValue"),
            (ebs(Some(20), "io1", None, None), "MissingParameter"),
            (ebs(Some(20), "gp2", Some(3000), None), "InvalidParameterCombination"),
            (ebs(Some(20), "gp2", None, Some(200)), "InvalidParameterCombination"),
            (ebs(Some(20), "gp3", Some(10), None), "InvalidParameterValue"),
            (ebs(Some(0), "gp3", None, None), "InvalidParameterValue"),
        ] {
            let refused = planned(&image(), &[device("/dev/xvda", ebs.clone())]).unwrap_err();
            assert_eq!(refused.code, code, "{ebs:?}");
        }
        let twice = [
            device("/dev/sdb", ebs(Some(1), "gp3", None, None)),
            device("/dev/sdb", ebs(Some(1), "gp3", None, None)),
        ];
        assert_eq!(planned(&image(), &twice).unwrap_err().code, "InvalidBlockDeviceMapping");
    }
}
