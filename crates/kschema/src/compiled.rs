//! The schema of one version of a custom kind, ready to use.

use serde_json::Value;

use crate::cel::Rules;
use crate::field::{FieldError, FieldErrorKind, Path};
use crate::scale::ScalePaths;
use crate::schema::{Schema, SchemaError};
use crate::{defaulting, listtype, objectmeta, prune, validate};

/// What the API server does with objects of one version of a custom kind. Made once per version.
#[derive(Debug)]
pub struct CompiledSchema {
    schema: Schema,
    rules: Option<Rules>,
    /// Whether there are objects inside objects; most kinds have none.
    has_embedded: bool,
    /// Whether there are lists that are sets or maps.
    has_list_types: bool,
}

impl CompiledSchema {
    /// Compiles the `openAPIV3Schema` of a version. Whether the schema is one that a
    /// CustomResourceDefinition may have is the matter of [`crate::crd::validate_crd`].
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        let schema = Schema::parse(schema)?;
        let rules = Rules::compile(&schema);
        Ok(Self {
            rules,
            has_embedded: schema.has(&|node| node.embedded_resource),
            has_list_types: schema.has(&|node| node.list_type.is_some()),
            schema,
        })
    }

    /// The parsed schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Removes fields that the schema does not know, also in the metadata of embedded objects,
    /// and nulls that mean nothing. Metadata of a wrong type is an error (answered with 400).
    ///
    /// The object's own metadata is not looked at: see [`objectmeta::coerce_metadata`].
    pub fn prune(&self, object: &mut Value) -> Result<(), FieldError> {
        prune::prune(object, &self.schema, false);
        self.tidy(object, false).map(drop)
    }

    /// As [`Self::prune`], and returns the removed fields: first those that the schema does not
    /// know, sorted, then those of embedded metadata.
    pub fn prune_tracked(&self, object: &mut Value) -> Result<Vec<String>, FieldError> {
        let mut unknown = prune::prune(object, &self.schema, true);
        unknown.extend(self.tidy(object, false)?);
        Ok(unknown)
    }

    /// As [`Self::prune`] for what is read from the store: malformed metadata is dropped.
    pub fn prune_stored(&self, object: &mut Value) {
        prune::prune(object, &self.schema, false);
        // Nothing fails where everything malformed is dropped.
        let _ = self.tidy(object, true);
    }

    fn tidy(&self, object: &mut Value, drop_malformed: bool) -> Result<Vec<String>, FieldError> {
        defaulting::drop_nulls(object, &self.schema);
        if !self.has_embedded {
            return Ok(Vec::new());
        }
        objectmeta::coerce_embedded(object, &self.schema, drop_malformed)
    }

    /// The fields that [`Self::prune`] would remove, as paths like `spec.list[0].extra`.
    pub fn unknown_fields(&self, object: &Value) -> Vec<String> {
        let mut copy = object.clone();
        let mut unknown = prune::prune(&mut copy, &self.schema, true);
        unknown.extend(self.tidy(&mut copy, true).unwrap_or_default());
        unknown
    }

    /// Fills in defaults.
    pub fn default(&self, object: &mut Value) {
        defaulting::fill(object, &self.schema);
    }

    /// Checks a new object against the value validations.
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate::validate(object, &self.schema, &Path::root())
    }

    /// Checks a changed object against the value validations, forgiving errors in what did not
    /// change.
    pub fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        validate::validate_update(new, Some(old), &self.schema, &Path::root())
    }

    /// Checks the status of a changed object, as for an update through the status subresource.
    pub fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        match (new.get("status"), self.schema.properties.get("status")) {
            (Some(status), Some(schema)) => {
                validate::validate_update(status, old.get("status"), schema, &Path::new("status"))
            }
            _ => Vec::new(),
        }
    }

    /// Checks the objects inside an object: their types and metadata.
    pub fn validate_embedded(&self, object: &Value) -> Vec<FieldError> {
        if !self.has_embedded {
            return Vec::new();
        }
        objectmeta::validate(object, &self.schema, &Path::root(), false)
    }

    /// Checks that lists which are sets or maps have no item twice.
    pub fn validate_list_types(&self, object: &Value) -> Vec<FieldError> {
        if !self.has_list_types {
            return Vec::new();
        }
        listtype::validate(object, &self.schema)
    }

    /// Evaluates the validation rules.
    pub fn validate_cel(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.rules.as_ref().map_or_else(Vec::new, |rules| rules.validate(&self.schema, new, old).0)
    }

    /// All checks of a new object, in the order in which errors are reported. `first` are errors
    /// found before (of the metadata); they decide with the others whether rules are evaluated.
    pub fn validate_create_all(
        &self,
        object: &Value,
        scale: Option<&ScalePaths>,
        first: Vec<FieldError>,
    ) -> Verdict {
        let mut errors = first;
        errors.extend(self.validate(object));
        if let Some(scale) = scale {
            errors.extend(scale.validate_spec(object));
            errors.extend(scale.validate_status(object));
        }
        errors.extend(self.validate_embedded(object));
        errors.extend(self.validate_list_types(object));
        self.finish(errors, object, None)
    }

    /// All checks of a changed object, in the order in which errors are reported.
    pub fn validate_update_all(
        &self,
        new: &Value,
        old: &Value,
        scale: Option<&ScalePaths>,
        first: Vec<FieldError>,
    ) -> Verdict {
        let mut errors = first;
        errors.extend(self.validate_update(new, old));
        if let Some(scale) = scale {
            errors.extend(scale.validate_spec(new));
            errors.extend(scale.validate_status(new));
        }
        errors.extend(self.validate_embedded(new));
        if self.validate_list_types(old).is_empty() {
            errors.extend(self.validate_list_types(new));
        }
        self.finish(errors, new, Some(old))
    }

    /// All checks of an object whose status changed, in the order in which errors are reported.
    pub fn validate_status_update_all(
        &self,
        new: &Value,
        old: &Value,
        scale: Option<&ScalePaths>,
        first: Vec<FieldError>,
    ) -> Verdict {
        let mut errors = first;
        errors.extend(self.validate_status_update(new, old));
        if let Some(scale) = scale {
            errors.extend(scale.validate_status(new));
        }
        if self.validate_list_types(old).is_empty() {
            errors.extend(self.validate_list_types(new));
        }
        self.finish(errors, new, Some(old))
    }

    /// Rules are evaluated only on objects that are otherwise of the right shape.
    fn finish(&self, mut errors: Vec<FieldError>, new: &Value, old: Option<&Value>) -> Verdict {
        let mut warnings = Vec::new();
        if let Some(rules) = &self.rules {
            if errors.iter().any(|error| is_blocking(error.kind)) {
                errors.push(FieldError::invalid(
                    &Path::root(),
                    Value::Null,
                    "some validation rules were not checked because the object was invalid; \
                     correct the existing errors to complete validation",
                ));
            } else {
                let (found, forgiven) = rules.validate(&self.schema, new, old);
                errors.extend(found);
                warnings.extend(forgiven.iter().map(ToString::to_string));
            }
        }
        Verdict { errors, warnings }
    }
}

/// What all checks of an object found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Why the object is refused; it is accepted if there is nothing.
    pub errors: Vec<FieldError>,
    /// What users are warned about.
    pub warnings: Vec<String>,
}

impl From<Vec<FieldError>> for Verdict {
    fn from(errors: Vec<FieldError>) -> Self {
        Self { errors, warnings: Vec::new() }
    }
}

fn is_blocking(kind: FieldErrorKind) -> bool {
    matches!(
        kind,
        FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::invalid_causes;
    use serde_json::json;

    /// Objects with the answers that kube-apiserver 1.37.1 gave. Its errors come in the random
    /// order of its maps, so they are compared as sets.
    #[test]
    fn objects_are_answered_as_by_the_real_server() {
        let recorded: Value =
            serde_json::from_str(include_str!("../testdata/objects.json")).unwrap();
        let mut differences = Vec::new();
        for case in recorded.as_array().unwrap() {
            let (expected, found) = (expectation(case), answer(case));
            if expected != found {
                let label = case["label"].as_str().unwrap();
                differences.push(format!("{label}\n  expected {expected}\n  found    {found}"));
            }
        }
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }

    fn sorted(mut values: Vec<Value>) -> Vec<Value> {
        values.sort_by_key(ToString::to_string);
        values
    }

    fn expectation(case: &Value) -> Value {
        let causes = case["causes"].as_array().cloned().unwrap_or_default();
        let warnings: Vec<Value> = case["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|warning| {
                let text = warning.as_str().unwrap().strip_prefix("299 - \"").unwrap();
                Value::from(text.strip_suffix('"').unwrap().replace("\\\"", "\""))
            })
            .collect();
        let message = if case["code"] == 400 { case["message"].clone() } else { Value::Null };
        json!({"causes": sorted(causes), "object": case["object"], "warnings": sorted(warnings),
            "message": message})
    }

    fn answer(case: &Value) -> Value {
        let schema = CompiledSchema::new(&case["schema"]).unwrap();
        let complete = |spec: &Value| {
            let mut object = json!({"apiVersion": "x.io/v1", "kind": "Thing",
                "metadata": {"name": "a"}});
            for (name, value) in spec.as_object().unwrap() {
                object[name] = value.clone();
            }
            object
        };
        let mut new = complete(&case["new"]);
        let unknown: Vec<String> = schema
            .prune_tracked(&mut new)
            .unwrap()
            .iter()
            .map(|field| format!("unknown field \"{field}\""))
            .collect();
        if case["query"] == "?fieldValidation=Strict" {
            let message = format!("strict decoding error: {}", unknown.join(", "));
            return json!({"causes": [], "object": null, "warnings": [], "message": message});
        }
        schema.default(&mut new);
        let scale = case.pointer("/subresources/scale").and_then(ScalePaths::parse);
        let verdict = match case.get("old") {
            None => schema.validate_create_all(&new, scale.as_ref(), Vec::new()),
            Some(old) => {
                let old = complete(old);
                if case["status"] == true {
                    schema.validate_status_update_all(&new, &old, scale.as_ref(), Vec::new())
                } else {
                    schema.validate_update_all(&new, &old, scale.as_ref(), Vec::new())
                }
            }
        };
        let object = verdict.errors.is_empty().then(|| {
            let mut object = new.clone();
            object.as_object_mut().unwrap().retain(|name, _| name == "spec" || name == "status");
            object
        });
        let warnings: Vec<Value> =
            unknown.into_iter().chain(verdict.warnings).map(Value::from).collect();
        json!({"causes": sorted(invalid_causes(&verdict.errors)), "object": object,
            "warnings": sorted(warnings), "message": null})
    }

    #[test]
    fn compiled_schemas_are_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<CompiledSchema>();
    }

    #[test]
    fn garbage_does_not_panic() {
        let schema = CompiledSchema::new(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"l": {"type": "array", "items":
                {"type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true}}},
                "x-kubernetes-validations": [{"rule": "self.l.size() > 0"}]}}}))
        .unwrap();
        for garbage in [
            json!(null),
            json!(1),
            json!([[]]),
            json!({"spec": null}),
            json!({"spec": {"l": {}}}),
            json!({"spec": {"l": [1, null, {"metadata": []}, {"kind": {}}]}}),
        ] {
            let mut object = garbage.clone();
            let _ = schema.unknown_fields(&object);
            let _ = schema.prune(&mut object);
            schema.prune_stored(&mut object);
            schema.default(&mut object);
            let _ = schema.validate_create_all(&object, None, Vec::new());
            let _ = schema.validate_update_all(&object, &garbage, None, Vec::new());
            let _ = schema.validate_cel(&garbage, Some(&object));
        }
    }
}
