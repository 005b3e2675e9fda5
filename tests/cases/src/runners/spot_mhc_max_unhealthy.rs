//! `spot-mhc-max-unhealthy.json`: how many unhealthy Machines may be repaired.

use fleetwright_lifecycle::{
    health::limit::Limit,
    int_or_percent::{IntOrPercent, NotANumber},
};
use serde_json::{Value, json};

use super::{Outcome, Runner, Use};
use crate::row::Row;

pub(super) const RUNNER: Runner = Runner {
    file: "spot-mhc-max-unhealthy.json",
    tables: &[
        ("parse.cases", Use::Rows(parse)),
        ("max.cases", Use::Rows(max)),
        ("max.derived", Use::Rows(max)),
        ("allowed.cases", Use::Rows(allowed)),
        ("allowed.capi", Use::Rows(allowed)),
        ("status.cases", Use::Rows(status)),
        ("unhealthyRange.cases", Use::Rows(range)),
    ],
};

fn value(given: &Value) -> Result<IntOrPercent, NotANumber> {
    match given {
        Value::String(text) => IntOrPercent::parse(text),
        other => Ok(IntOrPercent::Int(other.as_i64().unwrap_or_default())),
    }
}

fn limit(row: &Row<'_>) -> Result<Limit, NotANumber> {
    match row.get("maxUnhealthy") {
        Value::Null => Ok(Limit::default()),
        given => value(given).map(Limit::AtMost),
    }
}

fn count(value: &Value) -> usize {
    value.as_u64().and_then(|count| count.try_into().ok()).unwrap_or_default()
}

fn parse(row: &Row<'_>) -> Outcome {
    let found = match value(row.get("in")) {
        Ok(IntOrPercent::Int(value)) => json!([value, false, null]),
        Ok(IntOrPercent::Percent(value)) => json!([value, true, null]),
        Err(error) => json!([0, error.percent(), error.to_string()]),
    };
    let wanted = json!([row.get("value"), row.get("isPercent"), row.get("error")]);
    Outcome::equal(&wanted, &found)
}

fn max(row: &Row<'_>) -> Outcome {
    let limit = limit(row);
    let failed = limit.is_err();
    let found = limit.map_or(0, |limit| limit.most(count(row.get("expectedMachines"))));
    let wanted = (count(row.get("max")), row.get("error").as_bool().unwrap_or_default());
    Outcome::equal(&wanted, &(found, failed))
}

fn allowed(row: &Row<'_>) -> Outcome {
    let (total, healthy) = (count(row.get("expected")), count(row.get("healthy")));
    // A limit that nobody understands allows nothing.
    let found = limit(row).is_ok_and(|limit| limit.allows(total, healthy));
    Outcome::equal(row.get("allowed"), &found.into())
}

fn status(row: &Row<'_>) -> Outcome {
    let (total, healthy) = (count(row.get("expected")), count(row.get("healthy")));
    let found = limit(row).map_or(0, |limit| limit.left(total, healthy));
    Outcome::equal(row.get("remediationsAllowed"), &found.into())
}

fn range(row: &Row<'_>) -> Outcome {
    let unhealthy = count(row.get("unhealthy"));
    let Ok(limit) = Limit::range(row.get("range").as_str().unwrap_or_default()) else {
        return Outcome::equal(&row.get("error").as_bool(), &Some(true));
    };
    // As many again are healthy, so that only the unhealthy ones count.
    let total = unhealthy * 2;
    if let Some(left) = row.get("remediationsAllowed").as_u64() {
        let found = limit.left(total, unhealthy);
        if left != found as u64 {
            return Outcome::Failed(format!("wanted {left} more, found {found}"));
        }
    }
    Outcome::equal(&row.get("allowed").as_bool(), &Some(limit.allows(total, unhealthy)))
}
