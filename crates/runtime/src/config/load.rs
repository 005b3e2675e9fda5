//! Puts the configuration together, and says exactly what is wrong with it.

use std::fmt;

use serde_json::{Map, Value};

use super::{Config, Field, fields, fields::ENVIRONMENT_PREFIX, nearest::nearest};
use crate::leader::InvalidSettings;

/// Variables of ours that are not fields: where the file is.
const OTHER_VARIABLES: [&str; 1] = ["FLEETWRIGHT_CONFIG"];

/// Where values come from. Nothing is read here.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Name and text of the file.
    pub file: Option<(String, String)>,
    /// The environment; what is not ours is ignored.
    pub environment: Vec<(String, String)>,
    /// Flags, without the dashes in front.
    pub flags: Vec<(String, String)>,
}

/// A configuration, and what about it is odd but not wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In this file.
    File(String),
    /// By this environment variable.
    Variable(String),
    /// By this flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => write!(f, "file {name}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag --{name}"),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is not YAML, or not a map.
    #[error("{origin}: {reason}")]
    Unreadable {
        /// Which file.
        origin: Origin,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such field.
    #[error("{origin}: there is no {key}; {fix}")]
    Unknown {
        /// Where it is.
        origin: Origin,
        /// The field as written.
        key: String,
        /// What to write instead.
        fix: String,
    },
    /// The field does not take this value.
    #[error("{origin}: {key} cannot be {value}; give {expected}")]
    Invalid {
        /// Where it is.
        origin: Origin,
        /// The field.
        key: String,
        /// The value as written.
        value: String,
        /// What it takes.
        expected: String,
    },
    /// Values that do not go together.
    #[error("{key} cannot be {value}; {fix}")]
    Contradiction {
        /// The field.
        key: String,
        /// Its value.
        value: String,
        /// What to do.
        fix: String,
    },
}

/// Everything that is wrong, one to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Puts the configuration together: defaults, then the file, the environment, and flags.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    let mut loader = Loader {
        fields: fields(),
        tree: serde_json::to_value(Config::default()).unwrap_or_default(),
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    if let Some((name, text)) = &sources.file {
        loader.file(name, text);
    }
    let mut environment = sources.environment.clone();
    environment.sort();
    for (name, text) in &environment {
        loader.variable(name, text);
    }
    for (name, text) in &sources.flags {
        loader.flag(name, text);
    }
    loader.finish()
}

struct Loader {
    fields: Vec<Field>,
    tree: Value,
    problems: Vec<Problem>,
    warnings: Vec<String>,
}

impl Loader {
    fn file(&mut self, name: &str, text: &str) {
        let origin = Origin::File(name.to_owned());
        // A file of comments only is a file that sets nothing.
        match serde_saphyr::from_str::<Option<Map<String, Value>>>(text) {
            Ok(None) => {}
            Ok(Some(map)) => self.section(&origin, &mut Vec::new(), map),
            Err(error) => {
                self.problems.push(Problem::Unreadable { origin, reason: error.to_string() });
            }
        }
    }

    fn section(&mut self, origin: &Origin, path: &mut Vec<String>, map: Map<String, Value>) {
        for (name, value) in map {
            path.push(name);
            let field = self.fields.iter().find(|field| field.path == *path).cloned();
            let is_section = self.fields.iter().any(|field| field.path.starts_with(path));
            match (field, value) {
                // A section or field without a value is not set.
                (_, Value::Null) if is_section => {}
                (Some(field), value) => self.set(origin, &field, value),
                (None, Value::Object(map)) if is_section => self.section(origin, path, map),
                (None, value) if is_section => self.problems.push(Problem::Invalid {
                    origin: origin.clone(),
                    key: path.join("."),
                    value: value.to_string(),
                    expected: "a section with fields".to_owned(),
                }),
                (None, _) => {
                    let fix = self.suggest_key(path);
                    let (origin, key) = (origin.clone(), path.join("."));
                    self.problems.push(Problem::Unknown { origin, key, fix });
                }
            }
            path.pop();
        }
    }

    fn variable(&mut self, name: &str, text: &str) {
        if !name.starts_with(ENVIRONMENT_PREFIX) || OTHER_VARIABLES.contains(&name) {
            return;
        }
        if let Some(field) = self.fields.iter().find(|field| field.variable() == name).cloned() {
            self.set_text(&Origin::Variable(name.to_owned()), &field, text);
        } else if !is_service_variable(name) {
            // Not an error: Kubernetes and others put variables of their own there.
            let names: Vec<_> = self.fields.iter().map(Field::variable).collect();
            let meant = nearest(name, names.iter().map(String::as_str));
            let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            self.warnings.push(format!("environment variable {name} sets nothing{meant}"));
        }
    }

    fn flag(&mut self, name: &str, text: &str) {
        let origin = Origin::Flag(name.to_owned());
        if let Some(field) = self.fields.iter().find(|field| field.flag() == name).cloned() {
            self.set_text(&origin, &field, text);
            return;
        }
        let names: Vec<_> = self.fields.iter().map(Field::flag).collect();
        let fix = match nearest(name, names.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean --{meant}?"),
            None => "--help lists all flags".to_owned(),
        };
        self.problems.push(Problem::Unknown { origin, key: format!("--{name}"), fix });
    }

    fn suggest_key(&self, path: &[String]) -> String {
        let depth = path.len();
        let mut near: Vec<&str> = self
            .fields
            .iter()
            .filter(|field| field.path.get(..depth - 1) == path.get(..depth - 1))
            .filter_map(|field| field.path.get(depth - 1).map(String::as_str))
            .collect();
        near.dedup();
        let name = path.last().map(String::as_str).unwrap_or_default();
        if let Some(meant) = nearest(name, near.iter().copied()) {
            let mut full = path.to_vec();
            meant.clone_into(&mut full[depth - 1]);
            return format!("did you mean {}?", full.join("."));
        }
        // Perhaps it is in another section.
        let elsewhere = self.fields.iter().find(|field| field.path.last() == path.last());
        match elsewhere {
            Some(field) => format!("did you mean {}?", field.key()),
            None => format!("here can be {}", near.join(", ")),
        }
    }

    fn set_text(&mut self, origin: &Origin, field: &Field, text: &str) {
        match parse(field, text) {
            Some(value) => self.set(origin, field, value),
            None => self.refuse(origin, field, format!("{text:?}"), field.expected()),
        }
    }

    /// Sets one value, if the configuration can still be read with it.
    fn set(&mut self, origin: &Origin, field: &Field, value: Value) {
        let written = value.to_string();
        let least = field.schema["minimum"].as_f64();
        if value.as_f64().is_some_and(|value| least.is_some_and(|least| value < least)) {
            self.refuse(origin, field, written, field.expected());
            return;
        }
        let mut tried = self.tree.clone();
        let place = field.path.iter().fold(&mut tried, |place, name| &mut place[name]);
        *place = value;
        if serde_json::from_value::<Config>(tried.clone()).is_ok() {
            self.tree = tried;
        } else {
            self.refuse(origin, field, written, field.expected());
        }
    }

    fn refuse(&mut self, origin: &Origin, field: &Field, value: String, expected: String) {
        let (origin, key) = (origin.clone(), field.key());
        self.problems.push(Problem::Invalid { origin, key, value, expected });
    }

    fn finish(mut self) -> Result<Loaded, Problems> {
        // Every value was tried as it was set.
        let config: Config = serde_json::from_value(self.tree).unwrap_or_default();
        self.problems.extend(contradictions(&config));
        if self.problems.is_empty() {
            Ok(Loaded { config, warnings: self.warnings })
        } else {
            Err(Problems(self.problems))
        }
    }
}

/// What an environment variable or a flag says, as the file would have it.
fn parse(field: &Field, text: &str) -> Option<Value> {
    let items = || text.split(',').map(str::trim).filter(|item| !item.is_empty());
    match field.schema["type"].as_str() {
        Some("boolean") => text.parse().ok().map(Value::Bool),
        Some("integer") => text.parse::<i64>().ok().map(Value::from),
        Some("number") => text.parse::<f64>().ok().map(Value::from),
        Some("array") => Some(items().map(Value::from).collect()),
        Some("object") => items()
            .map(|item| {
                let (name, value) = item.split_once('=')?;
                let value = value.trim().parse().ok()?;
                Some((name.trim().to_owned(), Value::Bool(value)))
            })
            .collect::<Option<Map<_, _>>>()
            .map(Value::Object),
        _ => Some(Value::from(text)),
    }
}

/// Kubernetes gives every pod variables about the services of its namespace, and one of them may
/// be called `fleetwright`.
fn is_service_variable(name: &str) -> bool {
    let rest = name.strip_prefix(ENVIRONMENT_PREFIX).unwrap_or_default();
    rest.contains("SERVICE_HOST")
        || rest.contains("SERVICE_PORT")
        || rest == "PORT"
        || rest.starts_with("PORT_")
        || rest.contains("_PORT")
}

fn contradictions(config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |key: &str, value: String, fix: &str| {
        let (key, fix) = (key.to_owned(), fix.to_owned());
        problems.push(Problem::Contradiction { key, value, fix });
    };
    let election = &config.leader_election;
    match election.settings("anybody").check() {
        Ok(()) | Err(InvalidSettings::NoIdentity) => {}
        Err(InvalidSettings::LeaseDurationTooShort) => add(
            "leaderElection.leaseDuration",
            election.lease_duration.to_string(),
            "give at least 1s",
        ),
        Err(InvalidSettings::RenewDeadlineTooLong) => add(
            "leaderElection.renewDeadline",
            election.renew_deadline.to_string(),
            &format!("give less than leaderElection.leaseDuration ({})", election.lease_duration),
        ),
        Err(InvalidSettings::RetryPeriodTooLong) => add(
            "leaderElection.retryPeriod",
            election.retry_period.to_string(),
            &format!(
                "give more than 0s and less than 5/6 of leaderElection.renewDeadline ({})",
                election.renew_deadline
            ),
        ),
    }
    let names = [
        ("machineNamespace", &config.machine_namespace),
        ("leaderElection.namespace", &election.namespace),
        ("leaderElection.name", &election.name),
    ];
    for (key, name) in names {
        if !crate::events::is_subdomain(name) {
            let fix = "give a name of lower-case letters, digits and dashes";
            add(key, format!("{name:?}"), fix);
        }
    }
    let (metrics, health) = (config.metrics.address, config.health.address);
    if metrics.0.is_some_and(|address| address.port() != 0) && metrics == health {
        add("health.address", health.to_string(), "metrics.address is the same; give another port");
    }
    problems
}
