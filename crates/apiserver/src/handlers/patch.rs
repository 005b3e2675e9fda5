//! PATCH: JSON patch, merge patch, strategic merge patch and apply.

use fleetwright_kschema::builtin::{TypeMeta, body};
use http::{StatusCode, header::CONTENT_TYPE};
use serde_json::Value;

use super::{Call, Part, Reply, modify::Modification, written::Owners};
use crate::{
    codec::{parse_yaml, yaml_warnings},
    object,
    options::{FieldValidation, WriteOptions},
    patch::{self, PatchError, Patched},
    status::{ApiError, Cause, Details, Result},
};

/// How a patch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

impl PatchType {
    pub(crate) fn of(call: &Call) -> Result<Self> {
        let header =
            call.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let media = header.split(';').next().unwrap_or_default();
        match media {
            JSON => Ok(Self::Json),
            MERGE => Ok(Self::Merge),
            STRATEGIC if !call.resource.is_custom() => Ok(Self::Strategic),
            APPLY => Ok(Self::Apply),
            _ if call.resource.is_custom() => {
                Err(ApiError::unsupported_media_type(&[JSON, MERGE, APPLY]))
            }
            _ => Err(ApiError::unroutable_media_type()),
        }
    }
}

/// A patch of the main resource or its status.
struct Patch {
    kind: PatchType,
    part: Part,
    options: WriteOptions,
    manager: String,
}

impl Modification for Patch {
    fn apply(&self, call: &mut Call, current: Option<&Value>) -> Result<Value> {
        if self.kind == PatchType::Apply {
            return self.apply_configuration(call, current);
        }
        let current = current.ok_or_else(|| {
            ApiError::not_found(&call.resource.group_resource(), &call.context.info.name)
        })?;
        let validation = self.options.field_validation;
        let mut patched = call.patched(self.kind, current, validation)?;
        let mut new = patched.object.clone();
        call.check_patched_kind(&patched)?;
        let unknown =
            call.shape(&mut new, validation).map_err(|why| patch_error(&patched.invalid(why)))?;
        if self.kind != PatchType::Strategic && validation != FieldValidation::Ignore {
            patched.strict.extend(unknown);
        }
        if validation == FieldValidation::Strict
            && let Some(error) = patched.refuse_fields()
        {
            return Err(patch_error(&error));
        }
        if validation == FieldValidation::Warn {
            call.warnings.append(&mut patched.strict);
        }
        Ok(call.manage_update(current, new, &self.manager, self.part.subresource()))
    }

    fn creates(&self) -> bool {
        self.kind == PatchType::Apply && self.part == Part::Main
    }

    fn owners(&self) -> Owners {
        if self.kind == PatchType::Apply { Owners::Kept } else { Owners::Forgotten }
    }
}

impl Patch {
    fn apply_configuration(&self, call: &mut Call, current: Option<&Value>) -> Result<Value> {
        let configuration = call.configuration(self.options.field_validation)?;
        let mut applied = call.manage_apply(
            current.unwrap_or(&Value::Null),
            &configuration,
            &self.manager,
            self.options.force,
            self.part.subresource(),
        )?;
        let unknown = call
            .shape(&mut applied, self.options.field_validation)
            .map_err(ApiError::bad_request)?;
        call.report(&unknown, self.options.field_validation, |all| {
            ApiError::bad_request(format!("strict decoding error: {all}"))
        })?;
        Ok(applied)
    }
}

impl Call {
    pub(crate) async fn patch(&mut self, part: Part) -> Result<Reply> {
        let kind = PatchType::of(self)?;
        let options = WriteOptions::parse_patch(&self.query, kind == PatchType::Apply)?;
        let patch = Patch { kind, part, manager: self.manager(&options.field_manager), options };
        if kind == PatchType::Apply {
            // Refuse what cannot be read before the object is looked for.
            self.configuration(FieldValidation::Ignore)?;
        }
        let (object, created) = self.modify(part, &patch.options, &patch).await?;
        self.answer(if created { StatusCode::CREATED } else { StatusCode::OK }, object)
    }

    /// The patched object. A strategic patch is decoded already.
    pub(crate) fn patched(
        &self,
        kind: PatchType,
        current: &Value,
        validation: FieldValidation,
    ) -> Result<Patched> {
        let check = validation != FieldValidation::Ignore;
        let body = &self.body;
        match kind {
            PatchType::Json => patch::json_patch(current, body, check),
            PatchType::Merge => patch::merge_patch(current, body, check),
            PatchType::Strategic | PatchType::Apply => {
                let api_version = object::text(current, &["apiVersion"]);
                let kind = object::text(current, &["kind"]);
                patch::apply_strategic(current, body, api_version, kind, check)
            }
        }
        .map_err(|error| patch_error(&error))
    }

    /// A patch cannot make an object of another kind.
    fn check_patched_kind(&self, patched: &Patched) -> Result<()> {
        let gvk = &self.resource.gvk;
        let found = TypeMeta {
            api_version: object::text(&patched.object, &["apiVersion"]).to_owned(),
            kind: object::text(&patched.object, &["kind"]).to_owned(),
        };
        if self.resource.is_custom() || found.kind.is_empty() || found.kind == *gvk.kind {
            return Ok(());
        }
        let why = body::unknown_conversion(&found, &gvk.group_version().to_string(), &gvk.kind);
        Err(patch_error(&patched.invalid(why)))
    }

    /// The body as an apply configuration.
    pub(crate) fn configuration(&mut self, validation: FieldValidation) -> Result<Value> {
        let parsed = match parse_yaml(&self.body, false) {
            Ok(parsed) => parsed,
            Err(strict_error) => {
                let parsed = parse_yaml(&self.body, true).map_err(|why| {
                    ApiError::bad_request(format!(
                        "error decoding patch: error converting YAML to JSON: {why}"
                    ))
                })?;
                match validation {
                    FieldValidation::Strict => {
                        return Err(ApiError::bad_request(format!(
                            "error strict decoding patch: error converting YAML to JSON: {strict_error}"
                        )));
                    }
                    FieldValidation::Warn => self.warnings.extend(yaml_warnings(&strict_error)),
                    FieldValidation::Ignore => {}
                }
                parsed
            }
        };
        if !parsed.value.is_object() {
            return Err(ApiError::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                go_type(&parsed.value)
            )));
        }
        Ok(parsed.value)
    }
}

/// How Go names the type of a JSON value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null | Value::Object(_) => "object",
    }
}

pub(crate) fn patch_error(error: &PatchError) -> ApiError {
    let details = match (error.cause(), error.reason()) {
        (Some(message), _) => Some(Details {
            causes: vec![Cause {
                reason: "FieldValueInvalid".to_owned(),
                message,
                field: "patch".to_owned(),
            }],
            ..Details::default()
        }),
        (None, "Invalid") => Some(Details::default()),
        (None, _) => None,
    };
    ApiError::new(error.status(), error.reason(), error.to_string(), details)
}
