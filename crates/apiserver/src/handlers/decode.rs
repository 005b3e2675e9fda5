//! From a request's bytes to an object of the kind at hand.

use fleetwright_kschema::{
    builtin::{self, TypeMeta, body},
    gotext, objectmeta,
};
use serde_json::Value;

use super::Call;
use crate::{
    codec::{BodyFormat, Parsed, parse_json, parse_yaml, yaml_warnings},
    gvk::GroupVersion,
    object,
    options::FieldValidation,
    registry::Schema,
    status::{ApiError, Result},
};

impl Call {
    /// Reads the body as an object of `self.resource`, checks its shape and fills in defaults.
    pub(crate) fn decode_object(&mut self, validation: FieldValidation) -> Result<Value> {
        if self.resource.is_custom() {
            return self.decode_custom(validation);
        }
        let format = BodyFormat::of(&self.headers, true)?;
        let gvk = self.resource.gvk.clone();
        let api_version = gvk.group_version().to_string();
        let (json, mut problems) = match format {
            BodyFormat::Json => (self.body.clone(), Vec::new()),
            BodyFormat::Yaml => {
                let (parsed, problems) = self.parse_text(format)?;
                (parsed.value.to_string().into(), problems)
            }
            BodyFormat::Protobuf => {
                let decoded =
                    fleetwright_kproto::decode(&self.body, Some((&api_version, &gvk.kind)))
                        .map_err(|error| self.unrecognized(&error.to_string()))?;
                (decoded.object.to_string().into(), Vec::new())
            }
        };
        let read = body::read(&json, &api_version, &gvk.kind).map_err(ApiError::bad_request)?;
        let found = &read.meta.api_version;
        if *found != api_version {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({found}) does not match the expected API version ({api_version})"
            )));
        }
        let meta = read.meta.clone();
        problems.extend(read.decoded.strict);
        let body = self.body.clone();
        self.report(&problems, validation, |all| {
            let error = format!("strict decoding error: {all}");
            ApiError::bad_request(body::refusal(&gvk.kind, Some(&meta), &error, &body))
        })?;
        let mut value = read.decoded.object;
        self.set_type(&mut value);
        self.resource.kind.default(&mut value);
        Ok(value)
    }

    fn decode_custom(&mut self, validation: FieldValidation) -> Result<Value> {
        let format = BodyFormat::of(&self.headers, false)?;
        let (parsed, mut problems) = self.parse_text(format)?;
        let mut value = parsed.value;
        let expected = self.resource.gvk.clone();
        let api_version = object::text(&value, &["apiVersion"]).to_owned();
        let kind = object::text(&value, &["kind"]).to_owned();
        if kind.is_empty() {
            return Err(self.unrecognized(&format!(
                "Object 'Kind' is missing in '{}'",
                String::from_utf8_lossy(&self.body)
            )));
        }
        let found = GroupVersion::parse(&api_version)
            .unwrap_or_else(|| GroupVersion::new("", &api_version));
        if found != expected.group_version() {
            self.warn_of_everything(&value, validation);
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({found}) does not match the expected API version ({})",
                expected.group_version()
            )));
        }
        let meta = TypeMeta { api_version, kind };
        let body = self.body.clone();
        // What claims to be another kind has no schema; validation refuses it.
        if meta.kind == *expected.kind {
            let unknown = self.shape(&mut value, validation).map_err(|why| {
                ApiError::bad_request(body::refusal(&expected.kind, Some(&meta), &why, &body))
            })?;
            problems.extend(unknown);
        }
        self.report(&problems, validation, |all| {
            let error = format!("strict decoding error: {all}");
            ApiError::bad_request(body::refusal(&expected.kind, Some(&meta), &error, &body))
        })?;
        Ok(value)
    }

    /// In a version that is not there, no field is known.
    fn warn_of_everything(&mut self, value: &Value, validation: FieldValidation) {
        if validation != FieldValidation::Warn {
            return;
        }
        let fields = value.as_object().into_iter().flat_map(|map| map.keys());
        self.warnings.extend(
            fields
                .filter(|field| !matches!(field.as_str(), "apiVersion" | "kind" | "metadata"))
                .map(|field| format!("unknown field {}", gotext::quote(field))),
        );
    }

    /// Reads the body as any object, without looking at its type.
    pub(crate) fn read_loose(&self) -> Result<Value> {
        match BodyFormat::of(&self.headers, true)? {
            BodyFormat::Json => parse_json(&self.body).map(|parsed| parsed.value).map_err(|why| {
                ApiError::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
            }),
            BodyFormat::Yaml => parse_yaml(&self.body, true)
                .map(|parsed| parsed.value)
                .map_err(ApiError::bad_request),
            BodyFormat::Protobuf => fleetwright_kproto::decode(&self.body, None)
                .map(|decoded| decoded.object)
                .map_err(|error| ApiError::bad_request(error.to_string())),
        }
    }

    /// Turns strict decoding problems into warnings or a refusal.
    pub(crate) fn report(
        &mut self,
        problems: &[String],
        validation: FieldValidation,
        refusal: impl FnOnce(String) -> ApiError,
    ) -> Result<()> {
        match validation {
            FieldValidation::Strict if !problems.is_empty() => Err(refusal(problems.join(", "))),
            FieldValidation::Warn => {
                self.warnings.extend(problems.iter().flat_map(|problem| yaml_warnings(problem)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn unrecognized(&self, why: &str) -> ApiError {
        ApiError::bad_request(body::refusal(&self.resource.gvk.kind, None, why, &self.body))
    }

    fn parse_text(&self, format: BodyFormat) -> Result<(Parsed, Vec<String>)> {
        if format == BodyFormat::Json {
            let mut parsed = parse_json(&self.body).map_err(|why| {
                self.unrecognized(&format!("couldn't get version/kind; json parse error: {why}"))
            })?;
            let problems = std::mem::take(&mut parsed.duplicates);
            return Ok((parsed, problems));
        }
        match parse_yaml(&self.body, false) {
            Ok(parsed) => Ok((parsed, Vec::new())),
            // A duplicate key only counts when fields are validated strictly.
            Err(why) => match parse_yaml(&self.body, true) {
                Ok(parsed) => Ok((parsed, vec![why])),
                Err(why) => Err(self.unrecognized(&why)),
            },
        }
    }

    fn set_type(&self, value: &mut Value) {
        object::set(value, &["apiVersion"], self.resource.group_version().to_string());
        object::set(value, &["kind"], &*self.resource.gvk.kind);
    }

    /// Checks an object's shape, drops what its kind does not know, and fills in defaults.
    /// Returns what is unknown.
    pub(crate) fn shape(
        &self,
        value: &mut Value,
        validation: FieldValidation,
    ) -> std::result::Result<Vec<String>, String> {
        let mut unknown = Vec::new();
        match &self.resource.schema {
            Schema::Builtin => {
                let gvk = &self.resource.gvk;
                let decoded =
                    builtin::decode_value(&gvk.group_version().to_string(), &gvk.kind, value)
                        .map_err(|error| error.to_string())?;
                unknown = decoded.strict;
                *value = decoded.object;
                self.set_type(value);
            }
            Schema::Custom(schema) => {
                let mut paths = objectmeta::coerce_metadata(value, false)?;
                paths.extend(
                    schema.compiled.prune_tracked(value).map_err(|error| error.to_string())?,
                );
                if validation != FieldValidation::Ignore {
                    unknown = paths
                        .iter()
                        .map(|path| format!("unknown field {}", gotext::quote(path)))
                        .collect();
                }
                schema.compiled.default(value);
            }
        }
        self.resource.kind.default(value);
        Ok(unknown)
    }
}
