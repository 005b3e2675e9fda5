//! Faults that a script asks for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The action of a question to the metadata service. Its parameters are the instance and the path.
pub const METADATA: &str = "Metadata";

/// A fault and the calls that it hits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Hits calls of this action; absent: every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Hits only calls that have this text in some parameter, such as an instance or a zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// So many calls pass first.
    #[serde(default)]
    pub skip: u32,
    /// So many calls are hit; absent: one.
    #[serde(default = "once")]
    pub times: u32,
    /// What happens to them.
    pub effect: Effect,
}

fn once() -> u32 {
    1
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Effect {
    /// It is refused, and has no effect unless `after`.
    #[serde(rename_all = "camelCase")]
    Error {
        /// Such as `InsufficientInstanceCapacity`.
        code: String,
        /// HTTP status; 400 if absent.
        #[serde(default = "bad_request")]
        status: u16,
        /// In words.
        #[serde(default)]
        message: String,
        /// It is carried out first.
        #[serde(default)]
        after: bool,
    },
    /// The connection breaks: before the call is carried out, or after.
    #[serde(rename_all = "camelCase")]
    Lost {
        /// It is carried out first.
        #[serde(default)]
        after: bool,
    },
    /// It takes this many seconds longer.
    Delay(f64),
    /// It is throttled.
    Throttle,
    /// Its answer is nonsense. Of the metadata service alone.
    Garbage,
    /// Its answer does not end in sensible time. Of the metadata service alone.
    Endless,
    /// It is never answered. Of the metadata service alone.
    Hang,
}

fn bad_request() -> u16 {
    400
}

impl Fault {
    /// The next call of an action meets an effect.
    pub fn next(action: &str, effect: Effect) -> Self {
        Self { action: Some(action.to_owned()), parameter: None, skip: 0, times: 1, effect }
    }

    /// The next `times` calls.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    /// So many calls pass first.
    #[must_use]
    pub fn skip(mut self, skip: u32) -> Self {
        self.skip = skip;
        self
    }

    /// Only calls that have this text in some parameter.
    #[must_use]
    pub fn with_parameter(mut self, text: &str) -> Self {
        self.parameter = Some(text.to_owned());
        self
    }
}

impl Effect {
    /// A refusal without an effect.
    pub fn error(code: &str, status: u16, message: &str) -> Self {
        Self::Error { code: code.to_owned(), status, message: message.to_owned(), after: false }
    }

    /// How long a delay is; nothing of other effects.
    pub(super) fn delay(&self) -> Duration {
        match self {
            Self::Delay(seconds) => Duration::try_from_secs_f64(*seconds).unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }
}

/// The faults that wait for their calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        if fault.times > 0 {
            self.0.push(fault);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn list(&self) -> &[Fault] {
        &self.0
    }

    /// What happens to this call: of several faults that fit, the oldest that skips no more.
    pub(super) fn hit<'a>(
        &mut self,
        action: &str,
        parameters: &(impl Iterator<Item = &'a String> + Clone),
    ) -> Option<Effect> {
        let mut chosen = None;
        for (index, fault) in self.0.iter_mut().enumerate() {
            let named = fault.action.as_ref().is_none_or(|name| name == action);
            let text = fault.parameter.as_ref();
            let fits = text.is_none_or(|text| parameters.clone().any(|value| value.contains(text)));
            if !named || !fits {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if chosen.is_none() {
                chosen = Some(index);
            }
        }
        let fault = self.0.get_mut(chosen?)?;
        fault.times -= 1;
        let effect = fault.effect.clone();
        self.0.retain(|fault| fault.times > 0);
        Some(effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_wait_for_their_calls_and_wear_out() {
        let mut faults = Faults::default();
        faults.add(Fault::next("RunInstances", Effect::Throttle).times(2).skip(1));
        faults
            .add(Fault::next("RunInstances", Effect::Lost { after: true }).with_parameter("us-1b"));
        let (a, b) = (["us-1a".to_owned()], ["us-1b".to_owned()]);
        let mut hit = |action, zone: &[String]| faults.hit(action, &zone.iter());
        assert_eq!(hit("DescribeInstances", &a), None);
        assert_eq!(hit("RunInstances", &a), None);
        assert_eq!(hit("RunInstances", &a), Some(Effect::Throttle));
        assert_eq!(hit("RunInstances", &b), Some(Effect::Throttle));
        assert_eq!(hit("RunInstances", &a), None);
        assert_eq!(hit("RunInstances", &b), Some(Effect::Lost { after: true }));
        assert_eq!(hit("RunInstances", &b), None);
        assert!(faults.list().is_empty());
    }

    #[test]
    fn faults_are_read_from_json() {
        let text =
            r#"{"action": "RunInstances", "effect": {"error": {"code": "X", "status": 500}}}"#;
        let fault: Fault = serde_json::from_str(text).unwrap();
        assert_eq!((fault.times, fault.effect), (1, Effect::error("X", 500, "")));
        let fault: Fault = serde_json::from_str(r#"{"effect": "throttle", "times": 3}"#).unwrap();
        assert_eq!((fault.action, fault.times), (None, 3));
        assert!(serde_json::from_str::<Fault>(r#"{"effect": {"delay": 2}}"#).is_ok());
        assert!(serde_json::from_str::<Fault>(r#"{"effect": "explode"}"#).is_err());
    }
}
