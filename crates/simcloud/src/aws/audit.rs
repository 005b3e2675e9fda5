//! Every call, for counting and for checking against the public description of the services.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde::Serialize;

/// A call that was made.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// Counts up by one.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
    /// As IAM names it: ec2, elasticloadbalancing or sts.
    pub service: &'static str,
    /// The version of the protocol.
    pub version: String,
    /// Such as `RunInstances`.
    pub action: String,
    /// Who called.
    pub access_key: Option<String>,
    /// What was sent, as it was sent. User data is left out: it may hold secrets.
    pub parameters: BTreeMap<String, String>,
    /// HTTP status; nothing if no answer was given.
    pub status: Option<u16>,
    /// Code of the error, if there was one.
    pub error: Option<String>,
}

/// The last calls, and how many there were of each.
#[derive(Clone, Debug)]
pub(super) struct Audit {
    most: usize,
    sequence: u64,
    calls: VecDeque<Recorded>,
    counts: BTreeMap<String, u64>,
    errors: BTreeMap<String, u64>,
}

impl Audit {
    /// Keeps the last `most` calls.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            sequence: 0,
            calls: VecDeque::new(),
            counts: BTreeMap::new(),
            errors: BTreeMap::new(),
        }
    }

    pub(super) fn record(&mut self, mut call: Recorded) {
        self.sequence += 1;
        call.sequence = self.sequence;
        let name = format!("{}:{}", call.service, call.action);
        if let Some(error) = &call.error {
            *self.errors.entry(format!("{name} {error}")).or_default() += 1;
        }
        *self.counts.entry(name).or_default() += 1;
        if let Some(data) = call.parameters.get_mut("UserData") {
            "-".clone_into(data);
        }
        // The token of a web identity is a secret, too.
        if let Some(token) = call.parameters.get_mut("WebIdentityToken") {
            "-".clone_into(token);
        }
        self.calls.push_back(call);
        if self.calls.len() > self.most {
            self.calls.pop_front();
        }
    }

    pub(super) fn calls(&self) -> &VecDeque<Recorded> {
        &self.calls
    }

    /// By `service:Action`.
    pub(super) fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// By `service:Action Code`.
    pub(super) fn errors(&self) -> &BTreeMap<String, u64> {
        &self.errors
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.most);
    }
}
