//! The rules of a schema, compiled, and their evaluation on objects.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::eval::{Budget, Evaluator};
use super::field_path::{PathOptions, resolve_field_path};
use super::program::{CompileError, Output, Program};
use super::types::Type;
use super::value::Val;
use crate::correlate::{Correlation, KeyedItems};
use crate::field::{BadValue, FieldError, Path};
use crate::gotext;
use crate::schema::{Rule, Schema};

/// What one rule may cost, and all rules of a request together.
const RULE_BUDGET: u64 = 1_000_000;
const REQUEST_BUDGET: u64 = 10_000_000;
/// The longest message that an expression may make.
const MESSAGE_MAX: usize = 5 * 1024;

/// The compiled rules of a node and of the nodes below it.
#[derive(Debug)]
pub(crate) struct Rules {
    own: Vec<CompiledRule>,
    /// Why the rules of this node cannot be evaluated at all.
    untyped: bool,
    is_resource: bool,
    items: Option<Box<Rules>>,
    properties: BTreeMap<String, Rules>,
    additional: Option<Box<Rules>>,
}

#[derive(Debug)]
struct CompiledRule {
    rule: Rule,
    program: Result<Program, String>,
    message: Option<Program>,
    /// The field that errors are about, below the node; empty for the node itself.
    field_path: String,
}

impl Rules {
    /// Compiles all rules of a schema; `None` if there are none.
    pub(crate) fn compile(schema: &Schema) -> Option<Self> {
        Self::of_node(schema, true)
    }

    /// As [`Self::compile`] for a part of a schema.
    pub(crate) fn compile_part(schema: &Schema, is_resource: bool) -> Option<Self> {
        Self::of_node(schema, is_resource)
    }

    fn of_node(schema: &Schema, is_resource: bool) -> Option<Self> {
        let self_type = Type::of_schema(schema, is_resource);
        let compiled: Vec<CompiledRule> = match &self_type {
            Some(self_type) => schema
                .validations
                .iter()
                .filter(|rule| !rule.rule.trim().is_empty())
                .map(|rule| compile_rule(rule, schema, self_type))
                .collect(),
            None => Vec::new(),
        };
        let of_part = |part: &Schema| Self::of_node(part, part.embedded_resource);
        let rules = Self {
            untyped: self_type.is_none() && !schema.validations.is_empty(),
            own: compiled,
            is_resource,
            items: schema.items.as_deref().and_then(of_part).map(Box::new),
            properties: schema
                .properties
                .iter()
                .filter(|(_, part)| Type::of_schema(part, part.embedded_resource).is_some())
                .filter_map(|(name, part)| Some((name.clone(), of_part(part)?)))
                .collect(),
            additional: schema.additional_schema().and_then(of_part).map(Box::new),
        };
        let is_empty = rules.own.is_empty()
            && !rules.untyped
            && rules.items.is_none()
            && rules.properties.is_empty()
            && rules.additional.is_none();
        (!is_empty).then_some(rules)
    }

    /// Evaluates the rules on a new object, or on one that replaces another. Second are the
    /// errors in parts that did not change, of which users are only warned.
    pub(crate) fn validate(
        &self,
        schema: &Schema,
        new: &Value,
        old: Option<&Value>,
    ) -> (Vec<FieldError>, Vec<FieldError>) {
        let ratchet = old.map_or(Ratchet::default(), |old| Ratchet {
            current: Some(Correlation { new, old: Some(old), schema }),
            parent: None,
        });
        self.validate_at(schema, new, old, ratchet, &Path::root())
    }

    /// Evaluates the rules on a default value at `path`.
    pub(crate) fn validate_default(
        &self,
        schema: &Schema,
        value: &Value,
        old: Option<&Value>,
        path: &Path,
    ) -> Vec<FieldError> {
        self.validate_at(schema, value, old, Ratchet::default(), path).0
    }

    fn validate_at(
        &self,
        schema: &Schema,
        new: &Value,
        old: Option<&Value>,
        ratchet: Ratchet<'_>,
        path: &Path,
    ) -> (Vec<FieldError>, Vec<FieldError>) {
        let mut run =
            Run { errors: Vec::new(), forgiven: Vec::new(), left: REQUEST_BUDGET, stopped: false };
        run.visit(self, schema, new, old, ratchet, path);
        (run.errors, run.forgiven)
    }
}

fn compile_rule(rule: &Rule, schema: &Schema, self_type: &Type<'_>) -> CompiledRule {
    let optional = rule.optional_old_self.unwrap_or_default();
    let program = Program::compile(&rule.rule, self_type, optional, Output::Bool)
        .map_err(|error| rule_detail(&error));
    let message = (!rule.message_expression.is_empty())
        .then(|| Program::compile(&rule.message_expression, self_type, optional, Output::Text).ok())
        .flatten();
    let field_path = if rule.field_path.is_empty() {
        String::new()
    } else {
        resolve_field_path(&rule.field_path, schema, PathOptions { brackets: true })
            .map(|(path, _)| path.to_string())
            .unwrap_or_default()
    };
    CompiledRule { rule: rule.clone(), program, message, field_path }
}

fn rule_detail(error: &CompileError) -> String {
    match error {
        CompileError::Issues(issues) => format!("compilation failed: {issues}"),
        CompileError::WrongOutput => "cel expression must evaluate to a bool".to_owned(),
    }
}

/// Something wrong with a rule of a schema.
pub(crate) enum RuleIssue {
    /// The node has a type that rules cannot see.
    Untyped,
    /// The rule itself does not compile.
    Rule(usize, String),
    /// The expression of its message does not compile.
    Message(usize, String),
    /// `oldSelf` is used although the node has no old counterpart.
    UncorrelatableOldSelf(usize),
    /// `optionalOldSelf` is set on a rule that does not use `oldSelf`.
    NeedlessOptional(usize, bool),
}

/// Checks the rules of one node. `correlatable` tells whether values there have an old
/// counterpart on update.
pub(crate) fn check_rules(
    schema: &Schema,
    is_resource: bool,
    correlatable: bool,
) -> Vec<RuleIssue> {
    if schema.validations.is_empty() {
        return Vec::new();
    }
    let Some(self_type) = Type::of_schema(schema, is_resource) else {
        return vec![RuleIssue::Untyped];
    };
    let mut issues = Vec::new();
    for (i, rule) in schema.validations.iter().enumerate() {
        if rule.rule.trim().is_empty() {
            continue;
        }
        let optional = rule.optional_old_self.unwrap_or_default();
        match Program::compile(&rule.rule, &self_type, optional, Output::Bool) {
            Err(error) => {
                issues.push(RuleIssue::Rule(i, rule_detail(&error)));
            }
            Ok(program) => {
                if !rule.message_expression.is_empty()
                    && let Err(error) = Program::compile(
                        &rule.message_expression,
                        &self_type,
                        optional,
                        Output::Text,
                    )
                {
                    issues.push(RuleIssue::Message(
                        i,
                        match error {
                            CompileError::Issues(issues) => {
                                format!("messageExpression compilation failed: {issues}")
                            }
                            CompileError::WrongOutput => {
                                "messageExpression must evaluate to a string".to_owned()
                            }
                        },
                    ));
                }
                if program.uses_old_self {
                    if !correlatable {
                        issues.push(RuleIssue::UncorrelatableOldSelf(i));
                    }
                } else if let Some(value) = rule.optional_old_self {
                    issues.push(RuleIssue::NeedlessOptional(i, value));
                }
            }
        }
    }
    issues
}

/// Whether errors of a node are forgiven: if it, or else the nearest part of the object around
/// it that has an old counterpart, did not change.
#[derive(Clone, Copy, Default)]
struct Ratchet<'a> {
    current: Option<Correlation<'a>>,
    parent: Option<Correlation<'a>>,
}

impl<'a> Ratchet<'a> {
    fn forgives(&self) -> bool {
        self.current.or(self.parent).is_some_and(|correlation| correlation.is_unchanged())
    }

    fn field(&self, name: &str) -> Self {
        let Some(current) = self.current else { return *self };
        if self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        Self { current: current.field(name), parent: Some(current) }
    }

    fn item(&self, item: &'a Value, old_items: Option<&KeyedItems<'a>>) -> Self {
        let Some(current) = self.current else { return *self };
        let found = old_items.and_then(|old_items| current.item(item, old_items));
        Self { current: found, parent: Some(current) }
    }
}

/// The evaluation of all rules on one object.
struct Run {
    errors: Vec<FieldError>,
    forgiven: Vec<FieldError>,
    left: u64,
    stopped: bool,
}

impl Run {
    fn visit(
        &mut self,
        rules: &Rules,
        schema: &Schema,
        new: &Value,
        old: Option<&Value>,
        ratchet: Ratchet<'_>,
        path: &Path,
    ) {
        if new.is_null() || self.stopped {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        self.evaluate(rules, schema, new, old, ratchet, path);
        match new {
            Value::Array(items) => {
                let (Some(rules), Some(item_schema)) = (&rules.items, &schema.items) else {
                    return;
                };
                let old_items = old
                    .and_then(Value::as_array)
                    .map(|old_items| KeyedItems::new(old_items, schema));
                let keyed = ratchet.current.and_then(|current| current.keyed_items());
                for (i, item) in items.iter().enumerate() {
                    let old_item = old_items.as_ref().and_then(|old_items| old_items.get(item));
                    let ratchet = ratchet.item(item, keyed.as_ref());
                    self.visit(rules, item_schema, item, old_item, ratchet, &path.index(i));
                }
            }
            Value::Object(fields) => self.visit_fields(rules, schema, fields, old, ratchet, path),
            _ => {}
        }
    }

    fn visit_fields(
        &mut self,
        rules: &Rules,
        schema: &Schema,
        fields: &Map<String, Value>,
        old: Option<&Value>,
        ratchet: Ratchet<'_>,
        path: &Path,
    ) {
        let old_field = |name: &str| old.and_then(|old| old.get(name));
        if let (Some(rules), Some(schema)) = (&rules.additional, schema.additional_schema()) {
            for (name, field) in fields {
                let ratchet = ratchet.field(name);
                self.visit(rules, schema, field, old_field(name), ratchet, &path.key(name));
            }
        }
        for (name, rules) in &rules.properties {
            if let (Some(field), Some(schema)) = (fields.get(name), schema.properties.get(name)) {
                let ratchet = ratchet.field(name);
                self.visit(rules, schema, field, old_field(name), ratchet, &path.child(name));
            }
        }
    }

    fn evaluate(
        &mut self,
        rules: &Rules,
        schema: &Schema,
        new: &Value,
        old: Option<&Value>,
        ratchet: Ratchet<'_>,
        path: &Path,
    ) {
        let type_name = schema.type_name.as_str();
        if rules.untyped {
            let detail = "rule compiler initialization error: failed to convert to declType for \
                          CEL validation rules";
            self.errors.push(FieldError::invalid(path, type_name, detail));
            return;
        }
        for compiled in &rules.own {
            if self.stopped {
                return;
            }
            let program = match &compiled.program {
                Ok(program) => program,
                Err(detail) => {
                    let detail = format!("rule compile error: {detail}");
                    self.errors.push(FieldError::invalid(path, type_name, detail));
                    continue;
                }
            };
            let optional = compiled.rule.optional_old_self.unwrap_or_default();
            if program.uses_old_self && old.is_none() && !optional {
                continue;
            }
            let old_value = old.map(|old| Val::of_json(old, schema, rules.is_resource));
            let old_self = if optional {
                Some(Val::Optional(old_value.map(std::rc::Rc::new)))
            } else {
                old_value
            };
            let budget = Budget::new(RULE_BUDGET.min(self.left));
            let before = budget.left();
            let evaluator = Evaluator {
                budget: &budget,
                self_value: Val::of_json(new, schema, rules.is_resource),
                old_self,
            };
            let result = evaluator.evaluate(&program.expression);
            self.left -= before - budget.left();
            match result {
                Ok(Val::Bool(true)) => {}
                Ok(_) => {
                    let error = failure(compiled, schema, new, &evaluator, path);
                    if !program.uses_old_self && ratchet.forgives() {
                        self.forgiven.push(error);
                    } else {
                        self.errors.push(error);
                    }
                }
                Err(error) => {
                    let label = compiled.rule.label();
                    let message = &error.message;
                    let detail = if error.is_exhausted && self.left == 0 {
                        self.stopped = true;
                        "validation failed due to running out of cost budget, no further \
                         validation rules will be run"
                            .to_owned()
                    } else if error.is_exhausted {
                        self.stopped = true;
                        format!(
                            "'{message}': no further validation rules will be run due to call \
                             cost exceeds limit for rule: {label}"
                        )
                    } else if message.starts_with("no such overload") {
                        format!(
                            "'{message}': call arguments did not match a supported operator, \
                             function or macro signature for rule: {label}"
                        )
                    } else {
                        format!("{message} evaluating rule: {label}")
                    };
                    self.errors.push(FieldError::invalid(path, type_name, detail));
                }
            }
        }
    }
}

/// The error of a rule that does not hold.
fn failure(
    compiled: &CompiledRule,
    schema: &Schema,
    value: &Value,
    evaluator: &Evaluator<'_, '_>,
    path: &Path,
) -> FieldError {
    let path = if compiled.field_path.is_empty() {
        path.clone()
    } else {
        path.child(&compiled.field_path)
    };
    let message = compiled
        .message
        .as_ref()
        .and_then(|program| evaluator.evaluate(&program.expression).ok())
        .and_then(|value| match value {
            Val::Text(text) => Some(text.trim().to_owned()),
            _ => None,
        })
        .filter(|text| !text.is_empty() && text.len() <= MESSAGE_MAX && !text.contains('\n'));
    let detail = message.unwrap_or_else(|| compiled.rule.failure());
    let value = match schema.type_name.as_str() {
        "object" | "array" => BadValue::Omitted,
        _ => BadValue::Json(value.clone()),
    };
    match compiled.rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(&path, detail),
        Some("FieldValueRequired") => FieldError::required(&path, detail),
        Some("FieldValueDuplicate") => FieldError::duplicate(&path, value),
        _ => FieldError::invalid(&path, value, detail),
    }
}

/// How a rule prints in errors about it.
pub(crate) fn shown_rule(rule: &Rule) -> BadValue {
    let text = |text: &str| gotext::json(&Value::from(text));
    let reason = rule.reason.as_deref().map_or("null".to_owned(), text);
    let optional = rule.optional_old_self.map_or("null".to_owned(), |flag| flag.to_string());
    BadValue::Rendered(format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{reason},\
         \"FieldPath\":{},\"OptionalOldSelf\":{optional}}}",
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        text(&rule.field_path),
    ))
}
