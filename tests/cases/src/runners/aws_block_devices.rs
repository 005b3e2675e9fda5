//! Disks of instances.

use fleetwright_cloud_aws::rules::block_devices;
use serde_json::{Value, json};

use crate::row::Row;
use crate::runners::{Outcome, Runner, Use};

/// The runner.
pub(super) const RUNNER: Runner =
    Runner { file: "aws-block-devices.json", tables: &[("cases", Use::Rows(mappings))] };

fn mappings(row: &Row<'_>) -> Outcome {
    let devices = match serde_json::from_value::<Vec<_>>(row.get("input").clone()) {
        Ok(devices) => devices,
        Err(error) => return Outcome::Failed(format!("the devices cannot be read: {error}")),
    };
    match block_devices(&devices, row.context()["ami_root_device_name"].as_str()) {
        Ok(found) => Outcome::equal(row.get("expect"), &json!(found)),
        Err(mistake) => Outcome::equal(row.get("expect_error"), &Value::from(mistake.0)),
    }
}
