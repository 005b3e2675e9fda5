//! What error codes of EC2 mean.

use fleetwright_cloud::ErrorClass;
use fleetwright_cloud_aws::{errors::classify, rules::HOST_IN_GROUP};
use serde_json::Value;

use crate::row::Row;
use crate::runners::{Outcome, Runner, Use};

/// The runner.
pub(super) const RUNNER: Runner = Runner {
    file: "aws-ec2-errors.json",
    tables: &[
        ("cases", Use::Rows(code)),
        ("spread_limit", Use::Rows(spread_limit)),
        ("other_messages", Use::Rows(messages)),
    ],
};

/// How the rows word what we should do. The first phrase that a row has counts.
const WISHES: [(&str, ErrorClass); 16] = [
    ("Failed(InvalidConfiguration)", ErrorClass::Configuration),
    ("batch too big", ErrorClass::BatchTooBig),
    ("split", ErrorClass::BatchTooBig),
    ("throttle", ErrorClass::Throttled),
    ("quota", ErrorClass::Quota),
    ("credentials", ErrorClass::Credentials),
    ("transient", ErrorClass::Transient),
    ("capacity", ErrorClass::Capacity),
    ("re-describe", ErrorClass::AlreadyExists),
    ("keep finalizer", ErrorClass::InUse),
    ("instance launched for this Machine is gone", ErrorClass::TokenSpent),
    ("eventual consistency", ErrorClass::NotFound),
    ("absent", ErrorClass::NotFound),
    ("does not exist", ErrorClass::NotFound),
    ("parameters", ErrorClass::TokenMismatch),
    ("token", ErrorClass::TokenMismatch),
];

fn code(row: &Row<'_>) -> Outcome {
    let Some(wish) = row.expectation().and_then(|wanted| wanted.value.as_str()) else {
        return Outcome::Failed("the row says nothing of what we should do".to_owned());
    };
    let Some((_, wanted)) = WISHES.iter().find(|(phrase, _)| wish.contains(phrase)) else {
        return Outcome::Failed(format!("nobody knows what is meant by {wish:?}"));
    };
    let code = row.get("code").as_str().unwrap_or_default();
    Outcome::equal(wanted, &classify(code, row.get("note").as_str().unwrap_or_default()))
}

fn spread_limit(row: &Row<'_>) -> Outcome {
    let text = row.get("match_substring").as_str().unwrap_or_default();
    let message = format!("You have reached the {text} in us-east-1a.");
    for code in row.get("codes_seen").as_array().into_iter().flatten() {
        let found = classify(code.as_str().unwrap_or_default(), &message);
        if found != ErrorClass::SpreadLimit {
            return Outcome::Failed(format!("{code} with the text is {found:?}"));
        }
    }
    Outcome::Passed
}

/// The texts that EC2 sends with a wrong request are a wrong request, and one of them is ours.
fn messages(row: &Row<'_>) -> Outcome {
    for (name, text) in row.value().as_object().into_iter().flatten() {
        let text = text.as_str().unwrap_or_default();
        let found = classify("InvalidParameterCombination", text);
        if found != ErrorClass::Configuration {
            return Outcome::Failed(format!("{name} is {found:?}"));
        }
    }
    Outcome::equal(&row.get("host_tenancy_in_group"), &&Value::from(HOST_IN_GROUP))
}
