//! Disks.

use fleetwright_api::aws::{BlockDevice, Ebs};

use super::Mistake;
use crate::model::ec2::requests;

/// Kinds of volumes whose operations per second can be chosen.
const WITH_IOPS: [&str; 3] = ["io1", "io2", "gp3"];

/// The disks of an instance. Entries that are not volumes are left to the image; the first one
/// without a name is the root disk, whose name the image knows.
pub fn block_devices(
    devices: &[BlockDevice],
    root_device: Option<&str>,
) -> Result<Vec<requests::BlockDeviceMapping>, Mistake> {
    let mut root_taken = false;
    let mut mappings = Vec::new();
    for device in devices {
        let Some(volume) = &device.ebs else { continue };
        let name = match &device.device_name {
            Some(name) => Some(name.clone()),
            None if root_taken => return Err(Mistake("non root device must have name".to_owned())),
            None => {
                root_taken = true;
                root_device.map(str::to_owned)
            }
        };
        let mapping = requests::BlockDeviceMapping { device_name: name, ebs: Some(ebs(volume)) };
        mappings.push(mapping);
    }
    Ok(mappings)
}

fn ebs(volume: &Ebs) -> requests::EbsBlockDevice {
    let kind = volume.volume_type.as_deref().unwrap_or_default();
    // Installers write zero for "not chosen".
    let iops = volume.iops.filter(|iops| *iops > 0 && WITH_IOPS.contains(&kind));
    let key = volume.kms_key.as_ref().and_then(|key| {
        let set = |text: &&String| !text.is_empty();
        key.id.as_ref().filter(set).or(key.arn.as_ref().filter(set))
    });
    requests::EbsBlockDevice {
        // A volume that outlives its Machine would have no owner.
        delete_on_termination: Some(true),
        encrypted: volume.encrypted,
        iops,
        kms_key_id: key.cloned(),
        throughput: volume.throughput_mib.filter(|_| kind == "gp3").map(i64::from),
        volume_size: volume.volume_size,
        volume_type: volume.volume_type.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn mappings(devices: Value) -> Result<Value, Mistake> {
        let devices: Vec<BlockDevice> = serde_json::from_value(devices).unwrap();
        let mappings = block_devices(&devices, Some("/dev/xvda"))?;
        Ok(serde_json::to_value(mappings).unwrap())
    }

    #[test]
    fn keys_and_speeds() {
        let devices = json!([
            {"ebs": {"volumeType": "io1", "iops": 0, "kmsKey": {"id": "", "arn": "arn:k"}}},
            {"deviceName": "/dev/b", "ebs": {"volumeType": "gp2", "iops": 5, "throughputMib": 200,
                "encrypted": true, "kmsKey": {"id": "k", "arn": "arn:k"},
                "deleteOnTermination": false}},
        ]);
        let expected = json!([
            {"DeviceName": "/dev/xvda",
             "Ebs": {"DeleteOnTermination": true, "VolumeType": "io1", "KmsKeyId": "arn:k"}},
            {"DeviceName": "/dev/b",
             "Ebs": {"DeleteOnTermination": true, "VolumeType": "gp2", "KmsKeyId": "k",
                     "Encrypted": true}},
        ]);
        assert_eq!(mappings(devices).unwrap(), expected);
    }

    #[test]
    fn one_root_disk() {
        let devices = json!([{"ebs": {}}, {"deviceName": "/dev/b", "ebs": {}}, {"ebs": {}}]);
        assert_eq!(mappings(devices).unwrap_err().0, "non root device must have name");
    }
}
