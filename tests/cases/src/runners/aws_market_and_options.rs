//! How instances are bought, and their features.

use fleetwright_cloud_aws::rules::{
    IpFamily, Mistake, capacity_reservation, cpu_options, market_options, metadata_options,
    private_dns_options,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::row::Row;
use crate::runners::{Outcome, Runner, Use};

/// The runner.
pub(super) const RUNNER: Runner = Runner {
    file: "aws-market-and-options.json",
    tables: &[
        ("market_cases", Use::Rows(market)),
        ("capacity_reservation_cases", Use::Rows(reservation)),
        ("cpu_cases", Use::Rows(cpu)),
        ("imds_cases", Use::Rows(metadata)),
        ("private_dns_cases", Use::Rows(private_dns)),
    ],
};

fn read<T: DeserializeOwned + Default>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

fn family(row: &Row<'_>) -> IpFamily {
    IpFamily::from_word(row.get("ipFamily").as_str())
}

/// Compares what was made of a row, or the mistake in it: its text, where the row gives one.
fn compare<T: Serialize>(row: &Row<'_>, found: Result<T, Mistake>) -> Outcome {
    match (row.get("expect_error"), found) {
        (Value::Null, Ok(found)) => Outcome::equal(row.get("expect"), &json!(found)),
        (Value::Bool(true), Err(_)) => Outcome::Passed,
        (text @ Value::String(_), Err(mistake)) => Outcome::equal(text, &Value::from(mistake.0)),
        (_, Ok(found)) => Outcome::Failed(format!("wanted an error, found {}", json!(found))),
        (_, Err(mistake)) => Outcome::Failed(format!("found the error {mistake}")),
    }
}

fn market(row: &Row<'_>) -> Outcome {
    compare(row, market_options(&read(row.get("spec"))))
}

fn reservation(row: &Row<'_>) -> Outcome {
    compare(row, capacity_reservation(row.get("id").as_str().unwrap_or_default()))
}

fn cpu(row: &Row<'_>) -> Outcome {
    let options: Option<_> = read(row.get("spec"));
    compare(row, cpu_options(options.as_ref()))
}

fn metadata(row: &Row<'_>) -> Outcome {
    let options = read(&json!({"authentication": row.get("authentication")}));
    compare(row, Ok(metadata_options(Some(&options), family(row))))
}

fn private_dns(row: &Row<'_>) -> Outcome {
    compare(row, Ok(private_dns_options(family(row))))
}
