//! Checking values against the value validations of a schema.
//!
//! The order of checks, the texts, and which errors of several alternatives are reported follow
//! the validator of kube-openapi, whose messages users see.

mod number;
mod outcome;
mod trail;

use serde_json::{Map, Value};

use crate::correlate::{Correlation, KeyedItems};
use crate::field::{FieldError, Path};
use crate::formats::Format;
use crate::gotext;
use crate::schema::{Schema, Types};
use number::check_number;
use outcome::Outcome;
pub(crate) use trail::Trail;

/// Checks a value. `base` is the path of the value, which messages leave out.
pub(crate) fn validate(value: &Value, schema: &Schema, base: &Path) -> Vec<FieldError> {
    let checker = Checker { base };
    checker.check(value, schema, &Trail::root(), None).into_errors()
}

/// Checks a value that replaces another, forgiving errors in what did not change.
pub(crate) fn validate_update(
    new: &Value,
    old: Option<&Value>,
    schema: &Schema,
    base: &Path,
) -> Vec<FieldError> {
    let checker = Checker { base };
    let correlation = Correlation { new, old, schema };
    checker.check_ratcheted(new, schema, &Trail::root(), correlation).into_errors()
}

struct Checker<'a> {
    base: &'a Path,
}

impl Checker<'_> {
    /// Checks a value and drops the errors if it is what it was.
    fn check_ratcheted<'v>(
        &self,
        value: &'v Value,
        schema: &'v Schema,
        trail: &Trail<'_>,
        correlation: Correlation<'v>,
    ) -> Outcome {
        let mut outcome = self.check(value, schema, trail, Some(correlation));
        if !outcome.is_valid() && correlation.is_unchanged() {
            outcome.forgive();
        }
        outcome
    }

    fn check_child<'v>(
        &self,
        value: &'v Value,
        schema: &'v Schema,
        trail: &Trail<'_>,
        correlation: Option<Correlation<'v>>,
    ) -> Outcome {
        match correlation {
            Some(correlation) => self.check_ratcheted(value, schema, trail, correlation),
            None => self.check(value, schema, trail, None),
        }
    }

    fn check<'v>(
        &self,
        value: &'v Value,
        schema: &'v Schema,
        trail: &Trail<'_>,
        correlation: Option<Correlation<'v>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if value.is_null() {
            self.check_type(value, schema, trail, &mut outcome);
            self.check_enum(value, schema, trail, &mut outcome);
            return outcome;
        }
        if !schema.types.is_empty() || schema.checked_format.is_some() {
            self.check_type(value, schema, trail, &mut outcome);
            outcome.count();
        }
        self.check_combinations(value, schema, trail, &mut outcome);
        outcome.count();
        match value {
            Value::String(text) => {
                self.check_text(text, schema, trail, &mut outcome);
                outcome.count();
                if let Some(Format::Text(format)) = schema.checked_format {
                    if !format.accepts(text) {
                        self.type_failure(&schema.format, text, trail, &mut outcome);
                    }
                    outcome.count();
                }
            }
            Value::Number(number) => {
                check_number(self, number, schema, trail, &mut outcome);
                outcome.count();
            }
            Value::Array(items) => {
                self.check_items(items, schema, trail, correlation, &mut outcome);
                outcome.count();
            }
            _ => {}
        }
        self.check_enum(value, schema, trail, &mut outcome);
        outcome.count();
        if let Value::Object(fields) = value {
            self.check_fields(fields, schema, trail, correlation, &mut outcome);
            outcome.count();
        }
        outcome.count();
        outcome
    }

    /// The path that an error about the value at `trail` has.
    fn path(&self, trail: &str) -> Path {
        match trail.strip_prefix('.').unwrap_or(trail) {
            "" => self.base.clone(),
            name => self.base.child(name),
        }
    }

    /// An error whose text says `<path> in body <what>`.
    fn invalid(
        &self,
        value: impl Into<crate::field::BadValue>,
        what: &str,
        trail: &Trail<'_>,
        outcome: &mut Outcome,
    ) {
        let place = trail.to_string();
        let message = format!("{place} in body {what}");
        let error = FieldError::invalid(&self.path(&place), value, message.clone());
        outcome.fail(message, error);
    }

    /// An error that is about no field in particular.
    fn unplaced(&self, message: String, outcome: &mut Outcome) {
        let error = FieldError::invalid(self.base, "", message.clone());
        outcome.fail(message, error);
    }

    fn type_failure(&self, expected: &str, found: &str, trail: &Trail<'_>, outcome: &mut Outcome) {
        let place = trail.to_string();
        let message =
            format!("{place} in body must be of type {expected}: {}", gotext::quote(found));
        let error = FieldError::type_invalid(&self.path(&place), found, message.clone());
        outcome.fail(message, error);
    }

    fn check_type(&self, value: &Value, schema: &Schema, trail: &Trail<'_>, outcome: &mut Outcome) {
        let (kind, kind_name, kind_format) = match value {
            Value::Null => {
                let refused = !schema.types.is_empty()
                    && !schema.types.contains(Types::NULL)
                    && !schema.nullable;
                if refused {
                    self.type_failure(schema.type_names(), "null", trail, outcome);
                } else {
                    outcome.count();
                }
                return;
            }
            Value::Bool(_) => (Types::BOOLEAN, "boolean", ""),
            Value::Number(n) if n.as_i64().is_some() => (Types::INTEGER, "integer", "int64"),
            Value::Number(_) => (Types::NUMBER, "number", "float64"),
            Value::String(_) => (Types::STRING, "string", ""),
            Value::Array(_) => (Types::ARRAY, "array", ""),
            Value::Object(_) => (Types::OBJECT, "object", ""),
        };
        let whole_float = kind == Types::NUMBER
            && schema.types.contains(Types::INTEGER)
            && value.as_f64().is_some_and(number::is_json_integer);
        let integer_as_number = kind == Types::INTEGER && schema.types.contains(Types::NUMBER);
        let fits = schema.types.contains(kind) || whole_float || integer_as_number;
        let texty = matches!(value, Value::String(_) | Value::Array(_));
        let format = if schema.checked_format.is_some() { schema.format.as_str() } else { "" };
        if !texty && !format.is_empty() && !fits && kind_format != format {
            self.type_failure(format, kind_format, trail, outcome);
            return;
        }
        let numeric = schema.types.contains(Types::NUMBER) || schema.types.contains(Types::INTEGER);
        if fits || (!numeric && !format.is_empty() && texty) {
            outcome.count();
        } else {
            self.type_failure(schema.type_names(), kind_name, trail, outcome);
        }
    }

    fn check_enum(&self, value: &Value, schema: &Schema, trail: &Trail<'_>, outcome: &mut Outcome) {
        if schema.enum_values.is_empty() || schema.enum_values.iter().any(|e| enum_equal(value, e))
        {
            return;
        }
        let place = trail.to_string();
        let allowed: Vec<String> = schema.enum_values.iter().map(gotext::plain).collect();
        let message = format!("{place} in body should be one of [{}]", allowed.join(" "));
        let supported: Vec<String> = schema
            .enum_values
            .iter()
            .map(|e| e.as_str().map_or_else(|| gotext::json(e), str::to_owned))
            .collect();
        let error = FieldError::not_supported(&self.path(&place), value.clone(), &supported);
        outcome.fail(message, error);
    }

    fn check_text(&self, text: &str, schema: &Schema, trail: &Trail<'_>, outcome: &mut Outcome) {
        if schema.max_length.is_some() || schema.min_length.is_some() {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            if let Some(max) = schema.max_length.filter(|max| length > *max) {
                let place = trail.to_string();
                let message = format!("{place} in body should be at most {max} chars long");
                let limit = usize::try_from(max).unwrap_or_default();
                outcome.fail(message, FieldError::too_long(&self.path(&place), limit));
                return;
            }
            if let Some(min) = schema.min_length.filter(|min| length < *min) {
                let what = format!("should be at least {min} chars long");
                self.invalid(text, &what, trail, outcome);
                return;
            }
        }
        if let Some(pattern) = &schema.pattern
            && !pattern.is_match(text)
        {
            let what = match pattern.error() {
                None => format!("should match '{}'", pattern.source()),
                Some(error) => {
                    format!("should match '{}, but pattern is invalid: {error}'", pattern.source())
                }
            };
            self.invalid(text, &what, trail, outcome);
        }
    }

    fn check_items<'v>(
        &self,
        items: &'v [Value],
        schema: &'v Schema,
        trail: &Trail<'_>,
        correlation: Option<Correlation<'v>>,
        outcome: &mut Outcome,
    ) {
        if let Some(item_schema) = &schema.items {
            let keyed = correlation.and_then(|c| Some((c, c.keyed_items()?)));
            let correlate = |item: &'v Value| {
                let (correlation, old_items): (&Correlation<'v>, &KeyedItems<'v>) =
                    keyed.as_ref().map(|(c, k)| (c, k))?;
                correlation.item(item, old_items)
            };
            for (i, item) in items.iter().enumerate() {
                let trail = trail.item(i);
                outcome.merge(self.check_child(item, item_schema, &trail, correlate(item)));
            }
        }
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(min) = schema.min_items.filter(|min| count < *min) {
            self.invalid(count, &format!("should have at least {min} items"), trail, outcome);
        }
        if let Some(max) = schema.max_items.filter(|max| count > *max) {
            self.too_many(items.len(), max, "items", trail, outcome);
        }
        if schema.unique_items && items.iter().enumerate().any(|(i, a)| items[..i].contains(a)) {
            self.invalid("", "shouldn't contain duplicates", trail, outcome);
        }
        outcome.count();
    }

    fn too_many(
        &self,
        count: usize,
        max: i64,
        noun: &str,
        trail: &Trail<'_>,
        outcome: &mut Outcome,
    ) {
        let place = trail.to_string();
        let message = format!("{place} in body should have at most {max} {noun}");
        let limit = usize::try_from(max).unwrap_or_default();
        outcome.fail(message, FieldError::too_many(&self.path(&place), Some(count), limit));
    }

    fn check_fields<'v>(
        &self,
        fields: &'v Map<String, Value>,
        schema: &'v Schema,
        trail: &Trail<'_>,
        correlation: Option<Correlation<'v>>,
        outcome: &mut Outcome,
    ) {
        let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        if let Some(min) = schema.min_properties.filter(|min| count < *min) {
            self.invalid(count, &format!("should have at least {min} properties"), trail, outcome);
        }
        if let Some(max) = schema.max_properties.filter(|max| count > *max) {
            self.too_many(fields.len(), max, "properties", trail, outcome);
        }
        let correlate = |name: &str| {
            // The type of an object is the same before and after, whatever was stored.
            let type_meta = trail.is_root() && matches!(name, "kind" | "apiVersion");
            correlation.filter(|_| !type_meta).and_then(|c| c.field(name))
        };
        if let Some(additional) = &schema.additional_properties {
            for (name, field) in fields {
                if schema.properties.contains_key(name) {
                    continue;
                }
                if !additional.allows() {
                    let place = trail.to_string();
                    let message = format!("{place}.{name} in body is a forbidden property");
                    let error =
                        FieldError::invalid(&self.path(&place), name.as_str(), message.clone());
                    outcome.fail(message, error);
                } else if let Some(additional) = additional.schema() {
                    let trail = trail.additional(name);
                    outcome.merge(self.check_child(field, additional, &trail, correlate(name)));
                }
            }
        }
        for (name, property) in &schema.properties {
            if let Some(field) = fields.get(name) {
                let trail = trail.property(name);
                outcome.merge(self.check_child(field, property, &trail, correlate(name)));
            }
        }
        for name in &schema.required {
            if !fields.contains_key(name) {
                let place = format!("{trail}.{name}");
                let message = format!("{place} in body is required");
                outcome.fail(message, FieldError::required(&self.path(&place), ""));
            }
        }
    }

    fn check_combinations(
        &self,
        value: &Value,
        schema: &Schema,
        trail: &Trail<'_>,
        outcome: &mut Outcome,
    ) {
        if !schema.any_of.is_empty() {
            self.check_any_of(value, schema, trail, outcome);
        }
        if !schema.one_of.is_empty() {
            self.check_one_of(value, schema, trail, outcome);
        }
        if !schema.all_of.is_empty() {
            let mut passed = 0;
            for part in &schema.all_of {
                let result = self.check(value, part, trail, None);
                passed += usize::from(result.is_valid());
                outcome.merge(result);
            }
            if passed != schema.all_of.len() {
                let none = if passed == 0 { ". None validated" } else { "" };
                let place = gotext::quote(&trail.to_string());
                let message = format!("{place} must validate all the schemas (allOf){none}");
                self.unplaced(message, outcome);
            }
        }
        if let Some(not) = &schema.not
            && self.check(value, not, trail, None).is_valid()
        {
            let place = gotext::quote(&trail.to_string());
            self.unplaced(format!("{place} must not validate the schema (not)"), outcome);
        }
        outcome.count();
    }

    fn check_any_of(
        &self,
        value: &Value,
        schema: &Schema,
        trail: &Trail<'_>,
        outcome: &mut Outcome,
    ) {
        let mut best: Option<Outcome> = None;
        for part in &schema.any_of {
            let result = self.check(value, part, trail, None);
            if result.is_valid() {
                outcome.merge(result);
                return;
            }
            if best.as_ref().is_none_or(|best| result.matches() > best.matches()) {
                best = Some(result);
            }
        }
        let place = gotext::quote(&trail.to_string());
        self.unplaced(format!("{place} must validate at least one schema (anyOf)"), outcome);
        if let Some(best) = best {
            outcome.merge(best);
        }
    }

    fn check_one_of(
        &self,
        value: &Value,
        schema: &Schema,
        trail: &Trail<'_>,
        outcome: &mut Outcome,
    ) {
        let mut best: Option<Outcome> = None;
        let mut first_valid: Option<Outcome> = None;
        let mut valid = 0;
        for part in &schema.one_of {
            let result = self.check(value, part, trail, None);
            if result.is_valid() {
                valid += 1;
                best = None;
                first_valid.get_or_insert(result);
            } else if valid == 0
                && best.as_ref().is_none_or(|best| result.matches() > best.matches())
            {
                best = Some(result);
            }
        }
        if valid == 1 {
            if let Some(result) = first_valid {
                outcome.merge(result);
            }
            return;
        }
        let found = if valid == 0 {
            "Found none valid".to_owned()
        } else {
            format!("Found {valid} valid alternatives")
        };
        let place = gotext::quote(&trail.to_string());
        self.unplaced(
            format!("{place} must validate one and only one schema (oneOf). {found}"),
            outcome,
        );
        if let Some(best) = best {
            outcome.merge(best);
        }
    }
}

/// Equality with an enum value, after converting the number to the type of that value.
fn enum_equal(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a == b,
            (None, Some(_)) => a.as_f64().map(f64::trunc) == b.as_f64(),
            _ => a.as_f64() == b.as_f64(),
        },
        _ => value == allowed,
    }
}

#[cfg(test)]
mod tests;
