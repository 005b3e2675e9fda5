//! What is about to be launched, written down before it is.
//!
//! The annotation [`ANNOTATION`] on each Machine says under which token, as which of how many and
//! with which parameters its instance was asked for. It is written before the call and never
//! taken back while the call may have had an effect, so that whoever comes after a crash sends the
//! same token again, or finds what it made.

use std::fmt::Write as _;

use fleetwright_api::machine::Machine;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::plan::{Batch, Member};

pub use fleetwright_api::names::annotation::INTENT as ANNOTATION;

/// The form that this version writes, and the newest that it reads.
const VERSION: u32 = 1;
/// EC2 takes 64 characters; what is derived leaves room for a suffix.
const DIGEST_LENGTH: usize = 48;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// Instances are launched.
    Launch,
}

/// One Machine's part in a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// Form of this text.
    pub version: u32,
    /// What is done.
    #[serde(rename = "op")]
    pub operation: Operation,
    /// Token of the launch, the same for all that are launched together.
    pub token: String,
    /// Digest of the parameters.
    pub params_hash: String,
    /// Which of them this Machine is: the launch index of its instance.
    pub index: u32,
    /// How many are launched together.
    pub size: u32,
    /// With fewer than these, none is launched.
    pub min: u32,
    /// How many launches of this Machine are known to have come to nothing.
    pub attempt: u32,
    /// When it was written.
    pub at: Timestamp,
}

/// An intent that this version cannot read. Nothing is launched then: it may stand for an instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// It is not what we write.
    #[error("annotation {ANNOTATION} cannot be read: {0}")]
    Malformed(String),
    /// A later version wrote it.
    #[error("annotation {ANNOTATION} has version {0}, and this program reads up to {VERSION}")]
    Newer(u32),
}

impl Intent {
    /// A Machine's part in a launch that is about to be sent.
    pub fn launch(batch: &Batch, member: &Member, at: Timestamp) -> Self {
        Self {
            version: VERSION,
            operation: Operation::Launch,
            token: batch.token.clone(),
            params_hash: batch.hash.clone(),
            index: member.index,
            size: batch.size,
            min: batch.min,
            attempt: member.attempt,
            at,
        }
    }

    /// The intent on a Machine.
    pub fn of(machine: &Machine) -> Result<Option<Self>, IntentError> {
        machine.annotations().get(ANNOTATION).map(|text| Self::parse(text)).transpose()
    }

    /// Reads the annotation.
    pub fn parse(text: &str) -> Result<Self, IntentError> {
        #[derive(Deserialize)]
        struct Form {
            version: u32,
        }
        let malformed = |error: serde_json::Error| IntentError::Malformed(error.to_string());
        // The version first: a later form may have other fields.
        let Form { version } = serde_json::from_str(text).map_err(malformed)?;
        if version > VERSION {
            return Err(IntentError::Newer(version));
        }
        serde_json::from_str(text).map_err(malformed)
    }

    /// The annotation's text.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether the Machine is launched with others.
    pub fn is_shared(&self) -> bool {
        self.size > 1
    }
}

/// The token of a launch: a digest of who is launched, and for the how-manieth time. It depends on
/// nothing else, so that any process sends the same.
pub fn token<'a>(members: impl IntoIterator<Item = (&'a str, u32)>) -> String {
    let mut members: Vec<(&str, u32)> = members.into_iter().collect();
    members.sort_unstable();
    if let [(uid, attempt)] = members.as_slice()
        && uid.len() <= DIGEST_LENGTH
    {
        // Readable where it can be.
        return if *attempt == 0 { (*uid).to_owned() } else { format!("{uid}.{attempt}") };
    }
    let mut digest = Sha256::new();
    for (uid, attempt) in members {
        digest.update(format!("{uid}.{attempt}\n"));
    }
    let digest = digest.finalize();
    let mut token = digest.iter().fold(String::new(), |mut token, byte| {
        // Writing to a String does not fail.
        let _ = write!(token, "{byte:02x}");
        token
    });
    token.truncate(DIGEST_LENGTH);
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_survives_its_annotation() {
        let intent = Intent {
            version: VERSION,
            operation: Operation::Launch,
            token: "token".to_owned(),
            params_hash: "hash".to_owned(),
            index: 2,
            size: 5,
            min: 5,
            attempt: 0,
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
        };
        assert_eq!(
            intent.to_text(),
            r#"{"version":1,"op":"launch","token":"token","paramsHash":"hash","index":2,"size":5,"min":5,"attempt":0,"at":"2026-01-01T00:00:00Z"}"#
        );
        assert_eq!(Intent::parse(&intent.to_text()), Ok(intent));
    }

    #[test]
    fn what_cannot_be_read_is_never_taken_for_nothing() {
        assert_eq!(Intent::parse(r#"{"version":2,"op":"teleport"}"#), Err(IntentError::Newer(2)));
        for text in ["", "{}", r#"{"version":1}"#, r#"{"version":1,"op":"teleport"}"#] {
            assert!(matches!(Intent::parse(text), Err(IntentError::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn tokens_depend_on_who_and_how_often_alone() {
        let uid = "c8b1a3a0-0000-4000-8000-000000000001";
        assert_eq!(token([(uid, 0)]), uid);
        assert_eq!(token([(uid, 3)]), format!("{uid}.3"));
        let pair = token([("a", 0), ("b", 1)]);
        assert_eq!(pair, token([("b", 1), ("a", 0)]));
        for other in [token([("a", 0), ("b", 0)]), token([("a", 0)]), token([("ab", 1)])] {
            assert_ne!(pair, other);
        }
        for long in [token([("u".repeat(200).as_str(), 9)]), pair] {
            assert!(long.len() <= 64 && long.is_ascii());
        }
    }
}
