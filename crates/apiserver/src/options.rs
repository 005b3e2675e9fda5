//! The options of each verb, read from the query or the body and checked.

use fleetwright_kschema::field::{BadValue, FieldError, Path};
use serde_json::Value;

use crate::{
    gvk::GroupVersionKind,
    query::Query,
    selector::{FieldSelector, LabelSelector},
    status::{ApiError, Result},
};

/// What to do about unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them.
    Ignore,
    /// Drop them with a warning.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Everything but the write itself.
    pub dry_run: bool,
    /// Who owns the fields that are written; empty: derived from the user agent.
    pub field_manager: String,
    /// What to do about unknown fields.
    pub field_validation: FieldValidation,
    /// Whether an apply takes over fields of others.
    pub force: bool,
}

impl WriteOptions {
    /// Reads the options of a create or update request.
    pub fn parse(query: &Query, kind: &str) -> Result<Self> {
        let mut errors = Vec::new();
        let options = Self::read(query, &mut errors);
        refuse(kind, &errors)?;
        Ok(options)
    }

    /// Reads the options of a patch request.
    pub fn parse_patch(query: &Query, apply: bool) -> Result<Self> {
        let mut errors = Vec::new();
        let force = query.flag("force");
        if apply && query.text("fieldManager").is_empty() {
            errors.push(FieldError::required(
                &Path::new("fieldManager"),
                "is required for apply patch",
            ));
        }
        if !apply && force.is_some() {
            errors.push(FieldError::forbidden(
                &Path::new("force"),
                "may not be specified for non-apply patch",
            ));
        }
        let options = Self { force: force.unwrap_or(false), ..Self::read(query, &mut errors) };
        refuse("PatchOptions", &errors)?;
        Ok(options)
    }

    fn read(query: &Query, errors: &mut Vec<FieldError>) -> Self {
        let field_manager = query.text("fieldManager").to_owned();
        check_field_manager(&field_manager, errors);
        let dry_run = check_dry_run(query.all("dryRun"), errors);
        let field_validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.push(FieldError::not_supported(
                    &Path::new("fieldValidation"),
                    other,
                    &["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };
        Self { dry_run, field_manager, field_validation, force: false }
    }
}

fn check_field_manager(manager: &str, errors: &mut Vec<FieldError>) {
    const MAX: usize = 128;
    let path = Path::new("fieldManager");
    if manager.len() > MAX {
        errors.push(FieldError::too_long(&path, MAX));
    }
    for (at, c) in manager.char_indices() {
        if c.is_control() || (c.is_whitespace() && c != ' ') {
            errors.push(FieldError::invalid(
                &path,
                manager,
                format!("invalid character U+{:04X} (at position {at})", c as u32),
            ));
        }
    }
}

fn check_dry_run(values: &[String], errors: &mut Vec<FieldError>) -> bool {
    if values.iter().any(|v| v != "All") {
        let shown = serde_json::to_string(values).unwrap_or_default();
        let mut error = FieldError::not_supported(&Path::new("dryRun"), "", &["All"]);
        error.bad_value = BadValue::Rendered(shown);
        errors.push(error);
    }
    !values.is_empty()
}

fn refuse(kind: &str, errors: &[FieldError]) -> Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&GroupVersionKind::new("meta.k8s.io", "v1", kind), "", errors))
}

/// How a list or watch relates to the given resourceVersion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// That revision and no other.
    Exact,
    /// That revision or a newer one.
    NotOlderThan,
}

/// Options of list, watch and deletecollection.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Which labels.
    pub labels: LabelSelector,
    /// Which fields.
    pub fields: FieldSelector,
    /// Watch instead of list.
    pub watch: bool,
    /// Whether the watch sends bookmarks.
    pub bookmarks: bool,
    /// The revision asked for, as the client wrote it.
    pub resource_version: String,
    /// How it is meant.
    pub version_match: Option<VersionMatch>,
    /// When to end a watch.
    pub timeout_seconds: Option<i64>,
    /// How many objects at the most.
    pub limit: i64,
    /// Where the last page ended.
    pub continue_token: String,
    /// Whether a watch begins with the objects that are there.
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads the options of a request.
    pub fn parse(query: &Query, force_watch: bool) -> Result<Self> {
        let labels =
            LabelSelector::parse(query.text("labelSelector")).map_err(ApiError::bad_request)?;
        let fields =
            FieldSelector::parse(query.text("fieldSelector")).map_err(ApiError::bad_request)?;
        let mut options = Self {
            labels,
            fields,
            watch: force_watch || query.flag("watch").unwrap_or(false),
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            resource_version: query.text("resourceVersion").to_owned(),
            version_match: None,
            timeout_seconds: query.integer("timeoutSeconds")?,
            limit: query.integer("limit")?.unwrap_or(0),
            continue_token: query.text("continue").to_owned(),
            send_initial_events: query.flag("sendInitialEvents"),
        };
        let mut matching = query.text("resourceVersionMatch");
        options.version_match = match matching {
            "Exact" => Some(VersionMatch::Exact),
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            _ => None,
        };
        // A watch without a revision begins with what is there.
        let anywhere = matches!(options.resource_version.as_str(), "" | "0");
        if options.watch && anywhere && options.send_initial_events.is_none() && matching.is_empty()
        {
            options.send_initial_events = Some(true);
            options.version_match = Some(VersionMatch::NotOlderThan);
            matching = "NotOlderThan";
        }
        let errors = if options.watch {
            options.watch_errors(matching)
        } else {
            options.list_errors(matching)
        };
        refuse("ListOptions", &errors)?;
        Ok(options)
    }

    fn list_errors(&self, matching: &str) -> Vec<FieldError> {
        let path = Path::new("resourceVersionMatch");
        let mut errors = Vec::new();
        if !matching.is_empty() {
            if self.resource_version.is_empty() {
                errors.push(FieldError::forbidden(
                    &path,
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !self.continue_token.is_empty() {
                errors.push(FieldError::forbidden(
                    &path,
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
            if self.version_match.is_none() {
                errors.push(FieldError::not_supported(
                    &path,
                    matching,
                    &["Exact", "NotOlderThan", ""],
                ));
            }
            if self.version_match == Some(VersionMatch::Exact) && self.resource_version == "0" {
                errors.push(FieldError::forbidden(
                    &path,
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if self.send_initial_events.is_some() {
            errors.push(FieldError::forbidden(
                &Path::new("sendInitialEvents"),
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }

    fn watch_errors(&self, matching: &str) -> Vec<FieldError> {
        let path = Path::new("resourceVersionMatch");
        let not_older = self.version_match == Some(VersionMatch::NotOlderThan);
        let mut errors = Vec::new();
        if self.send_initial_events.is_some() && !not_older {
            errors.push(FieldError::forbidden(
                &path,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if !matching.is_empty() {
            if self.send_initial_events.is_none() {
                errors.push(FieldError::forbidden(
                    &path,
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            if !not_older {
                errors.push(FieldError::not_supported(&path, matching, &["NotOlderThan"]));
            }
            if !self.continue_token.is_empty() {
                errors.push(FieldError::forbidden(
                    &path,
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
        }
        errors
    }
}

/// What happens to dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They go first.
    Foreground,
    /// They go afterwards.
    Background,
    /// They stay.
    Orphan,
}

/// Options of delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Everything but the deletion itself.
    pub dry_run: bool,
    /// How long a pod may take to stop.
    pub grace_period_seconds: Option<i64>,
    /// What happens to dependents.
    pub propagation: Option<Propagation>,
    /// Whether the client asked with the old `orphanDependents`.
    pub orphan_dependents: Option<bool>,
    /// Delete only the object of this UID.
    pub uid: Option<String>,
    /// Delete only the object at this revision.
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// Reads the options from a body, or from the query when there is none.
    pub fn parse(body: Option<&Value>, query: &Query) -> Result<Self> {
        let mut options = Self::default();
        let mut errors = Vec::new();
        let propagation;
        if let Some(body) = body {
            let text = |key: &str| body.get(key).and_then(Value::as_str);
            options.grace_period_seconds = body.get("gracePeriodSeconds").and_then(Value::as_i64);
            options.orphan_dependents = body.get("orphanDependents").and_then(Value::as_bool);
            propagation = text("propagationPolicy").map(str::to_owned);
            let precondition = |key: &str| {
                let value = body.get("preconditions")?.get(key)?.as_str()?;
                Some(value.to_owned())
            };
            options.uid = precondition("uid");
            options.resource_version = precondition("resourceVersion");
            let dry_run: Vec<String> = crate::object::list(body, &["dryRun"])
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            options.dry_run = check_dry_run(&dry_run, &mut errors);
        } else {
            options.grace_period_seconds = query.integer("gracePeriodSeconds")?;
            options.orphan_dependents = query.flag("orphanDependents");
            let text = query.text("propagationPolicy");
            propagation = (!text.is_empty()).then(|| text.to_owned());
            options.dry_run = check_dry_run(query.all("dryRun"), &mut errors);
        }
        let path = Path::new("propagationPolicy");
        if let Some(text) = propagation {
            if options.orphan_dependents.is_some() {
                errors.insert(
                    0,
                    FieldError::invalid(
                        &path,
                        text.as_str(),
                        "orphanDependents and deletionPropagation cannot be both set",
                    ),
                );
            }
            match text.as_str() {
                "Foreground" => options.propagation = Some(Propagation::Foreground),
                "Background" => options.propagation = Some(Propagation::Background),
                "Orphan" => options.propagation = Some(Propagation::Orphan),
                other => errors.insert(
                    0,
                    FieldError::not_supported(
                        &path,
                        other,
                        &["Foreground", "Background", "Orphan", "nil"],
                    ),
                ),
            }
        }
        refuse("DeleteOptions", &errors)?;
        Ok(options)
    }

    /// The options as an object, for admission reviews.
    pub fn to_value(&self) -> Value {
        let mut object =
            serde_json::json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if let Some(seconds) = self.grace_period_seconds {
            object["gracePeriodSeconds"] = seconds.into();
        }
        if let Some(propagation) = self.propagation {
            object["propagationPolicy"] = format!("{propagation:?}").into();
        }
        if self.dry_run {
            object["dryRun"] = serde_json::json!(["All"]);
        }
        object
    }
}
