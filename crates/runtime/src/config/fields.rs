//! The fields of the configuration, read from its own schema.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::Config;

/// What every variable of ours starts with.
pub(super) const ENVIRONMENT_PREFIX: &str = "FLEETWRIGHT_";

/// One value that can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its place in the file, such as `["leaderElection", "leaseDuration"]`.
    pub path: Vec<String>,
    /// What it is for.
    pub description: String,
    /// Its value if nobody sets it.
    pub default: Value,
    /// What values it takes.
    pub schema: Value,
}

impl Field {
    /// `leaderElection.leaseDuration`
    pub fn key(&self) -> String {
        self.path.join(".")
    }

    /// `leader-election-lease-duration`, without the dashes in front.
    pub fn flag(&self) -> String {
        self.words('-')
    }

    /// `FLEETWRIGHT_LEADER_ELECTION_LEASE_DURATION`
    pub fn variable(&self) -> String {
        format!("{ENVIRONMENT_PREFIX}{}", self.words('_').to_uppercase())
    }

    fn words(&self, separator: char) -> String {
        let mut words = String::new();
        for part in &self.path {
            if !words.is_empty() {
                words.push(separator);
            }
            for letter in part.chars() {
                if letter.is_ascii_uppercase() {
                    words.push(separator);
                }
                words.push(letter.to_ascii_lowercase());
            }
        }
        words
    }

    /// What values it takes, in words that complete "is not …".
    pub fn expected(&self) -> String {
        let schema = &self.schema;
        let least = schema["minimum"].as_f64();
        let least = least.map(|least| format!(" of at least {least}")).unwrap_or_default();
        match (schema["type"].as_str(), schema["format"].as_str()) {
            _ if !self.choices().is_empty() => format!("one of {}", self.choices().join(", ")),
            (Some("boolean"), _) => "true or false".to_owned(),
            (Some("integer"), _) => format!("a whole number{least}"),
            (Some("number"), _) => format!("a number{least}"),
            (Some("array"), _) => "a list (with commas between, outside of a file)".to_owned(),
            (Some("object"), _) => {
                "a map to true or false (Name=true,Other=false outside of a file)".to_owned()
            }
            (_, Some("duration")) => "a duration such as 15s or 1m30s".to_owned(),
            (_, Some("listen-address")) => {
                "an address such as 127.0.0.1:8081, :8081 or 0 for none".to_owned()
            }
            _ => "text".to_owned(),
        }
    }

    /// The values it takes, if they are few and have names.
    fn choices(&self) -> Vec<&str> {
        if let Some(choices) = self.schema["enum"].as_array() {
            return choices.iter().filter_map(Value::as_str).collect();
        }
        let choices = self.schema["oneOf"].as_array().into_iter().flatten();
        choices.filter_map(|choice| choice["const"].as_str()).collect()
    }
}

/// The JSON schema of the configuration file.
pub fn schema() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<Config>().to_value()
}

/// All fields, sorted by path.
pub fn fields() -> Vec<Field> {
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut found = Vec::new();
    collect(&schema(), &defaults, &mut Vec::new(), &mut found);
    found
}

fn collect(schema: &Value, defaults: &Value, path: &mut Vec<String>, found: &mut Vec<Field>) {
    let Some(properties) = schema["properties"].as_object() else {
        let description = schema["description"].as_str().unwrap_or_default().to_owned();
        let (default, schema) = (defaults.clone(), schema.clone());
        found.push(Field { path: path.clone(), description, default, schema });
        return;
    };
    for (name, property) in properties {
        path.push(name.clone());
        collect(property, &defaults[name], path, found);
        path.pop();
    }
}
