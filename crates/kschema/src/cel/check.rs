//! Checking the types of an expression against the schema it is written for.
//!
//! What cannot be told passes: a rule that fails only with real values fails then.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr,
};

use super::positions::{Positions, located, user_parts};
use super::signatures::{self, Signature};
use super::types::Type;
use crate::schema::Pattern;

/// What the check found.
pub(super) struct Checked<'a> {
    pub(super) output: Type<'a>,
    /// Errors with their places, in the order of the source.
    pub(super) errors: Vec<String>,
    pub(super) uses_old_self: bool,
}

/// Checks an expression in which `self` has a type, and `oldSelf` the same or an optional one.
pub(super) fn check<'a>(
    source: &str,
    expression: &IdedExpr,
    self_type: &Type<'a>,
    old_self_type: &Type<'a>,
) -> Checked<'a> {
    let mut checker = Checker {
        positions: Positions::new(source, expression),
        self_type: self_type.clone(),
        old_self_type: old_self_type.clone(),
        scope: Vec::new(),
        found: Vec::new(),
        uses_old_self: false,
    };
    let output = checker.infer(expression);
    let mut found = checker.found;
    found.sort();
    found.dedup();
    let errors = found.iter().map(|(at, text)| located(source, *at, text)).collect();
    Checked { output, errors, uses_old_self: checker.uses_old_self }
}

struct Checker<'a> {
    positions: Positions,
    self_type: Type<'a>,
    old_self_type: Type<'a>,
    scope: Vec<(String, Type<'a>)>,
    found: Vec<(usize, String)>,
    uses_old_self: bool,
}

impl<'a> Checker<'a> {
    fn fail(&mut self, id: u64, message: String) -> Type<'a> {
        self.found.push((self.positions.of(id), message));
        Type::Dyn
    }

    fn is_bound(&self, name: &str) -> bool {
        self.scope.iter().any(|(bound, _)| bound == name)
    }

    fn infer(&mut self, node: &IdedExpr) -> Type<'a> {
        match &node.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Bytes(_) => Type::Bytes,
                LiteralValue::Double(_) => Type::Double,
                LiteralValue::Int(_) => Type::Int,
                LiteralValue::Null => Type::Null,
                LiteralValue::String(_) => Type::Text,
                LiteralValue::UInt(_) => Type::Uint,
            },
            Expr::Ident(name) => self.ident(node.id, name),
            Expr::Select(select) => self.select(node.id, select),
            Expr::Call(call) => self.call(node.id, call),
            Expr::List(list) => {
                let types: Vec<Type<'a>> = list.elements.iter().map(|e| self.infer(e)).collect();
                let joined = types.into_iter().reduce(|a, b| a.joined(&b));
                Type::List(Box::new(joined.unwrap_or(Type::Dyn)))
            }
            Expr::Map(map) => {
                let mut types: Option<(Type<'a>, Type<'a>)> = None;
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    let (key, value) = (self.infer(&entry.key), self.infer(&entry.value));
                    types = Some(match types {
                        None => (key, value),
                        Some((k, v)) => (k.joined(&key), v.joined(&value)),
                    });
                }
                let (key, value) = types.unwrap_or((Type::Dyn, Type::Dyn));
                Type::Map(Box::new(key), Box::new(value))
            }
            Expr::Comprehension(comprehension) => self.comprehension(node.id, comprehension),
            Expr::Struct(message) => {
                let text =
                    format!("undeclared reference to '{}' (in container '')", message.type_name);
                self.fail(node.id, text)
            }
            Expr::Unspecified => Type::Dyn,
        }
    }

    fn ident(&mut self, id: u64, name: &str) -> Type<'a> {
        if let Some((_, bound)) = self.scope.iter().rev().find(|(bound, _)| bound == name) {
            return bound.clone();
        }
        match name {
            "self" => self.self_type.clone(),
            "oldSelf" => {
                self.uses_old_self = true;
                self.old_self_type.clone()
            }
            _ if super::functions::type_named(name).is_some() => Type::Meta,
            _ => self.fail(id, format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    fn select(&mut self, id: u64, select: &SelectExpr) -> Type<'a> {
        if let Some(name) = dotted_name(select)
            && super::functions::type_named(&name).is_some()
        {
            return Type::Meta;
        }
        let operand = self.infer(&select.operand);
        let (operand, optional) = match operand {
            Type::Optional(inner) => (*inner, true),
            other => (other, false),
        };
        let field = match operand.field(&select.field) {
            Some(field) => field,
            None => match operand {
                Type::Object(..) => self.fail(id, format!("undefined field '{}'", select.field)),
                other => self.fail(id, format!("type '{other}' does not support field selection")),
            },
        };
        match (select.test, optional) {
            (true, _) => Type::Bool,
            (false, true) => Type::Optional(Box::new(field)),
            (false, false) => field,
        }
    }

    fn comprehension(&mut self, id: u64, comprehension: &ComprehensionExpr) -> Type<'a> {
        let range = self.infer(&comprehension.iter_range);
        let element = match range {
            Type::List(items) => *items,
            Type::Map(keys, _) => *keys,
            Type::Dyn => Type::Dyn,
            other => {
                let at = comprehension.iter_range.id;
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                let place = if matches!(comprehension.iter_range.expr, Expr::Comprehension(_)) {
                    id
                } else {
                    at
                };
                self.fail(place, text)
            }
        };
        self.scope.push((comprehension.iter_var.clone(), element));
        let result = self.macro_result(comprehension);
        self.scope.pop();
        result
    }

    fn macro_result(&mut self, comprehension: &ComprehensionExpr) -> Type<'a> {
        let parts = user_parts(&comprehension.loop_step, &comprehension.accu_var);
        let Expr::Call(step) = &comprehension.loop_step.expr else { return Type::Dyn };
        let types: Vec<(u64, Type<'a>)> =
            parts.iter().map(|part| (part.id, self.infer(part))).collect();
        let is_list = matches!(comprehension.accu_init.expr, Expr::List(_));
        let conditions = match step.func_name.as_str() {
            "_&&_" | "_||_" | "_?_:_" => 1,
            _ => 0,
        };
        for (id, found) in types.iter().take(conditions) {
            if !found.is_bool() && !found.is_dyn() {
                self.fail(*id, format!("expected type 'bool' but found '{found}'"));
            }
        }
        if is_list {
            let last = types.into_iter().next_back().map(|(_, t)| t);
            Type::List(Box::new(last.unwrap_or(Type::Dyn)))
        } else {
            Type::Bool
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Type<'a> {
        let name = call.func_name.as_str();
        if let Some(result) = self.binding_macro(call) {
            return result;
        }
        let namespace = match call.target.as_deref().map(|target| &target.expr) {
            Some(Expr::Ident(first))
                if !self.is_bound(first)
                    && super::functions::NAMESPACES.contains(&first.as_str()) =>
            {
                Some(first.as_str())
            }
            _ => None,
        };
        let target = match &call.target {
            Some(target) if namespace.is_none() => Some(self.infer(target)),
            _ => None,
        };
        let args: Vec<Type<'a>> = call.args.iter().map(|arg| self.infer(arg)).collect();
        if let Some(namespace) = namespace {
            let full = format!("{namespace}.{name}");
            if !signatures::is_namespaced(&full) {
                return self
                    .fail(id, format!("undeclared reference to '{full}' (in container '')"));
            }
            return signatures::namespaced_result(&full, &args);
        }
        if name == "matches"
            && let Some(pattern) = call.args.last()
            && let Expr::Literal(LiteralValue::String(text)) = &pattern.expr
            && Pattern::new(text.inner()).error().is_some()
        {
            self.fail(pattern.id, "invalid matches argument".to_owned());
            return Type::Bool;
        }
        match signatures::result(name, target.as_ref(), &args) {
            Signature::Result(result) => result,
            Signature::Unknown => {
                self.fail(id, format!("undeclared reference to '{name}' (in container '')"))
            }
            Signature::Mismatch => {
                let args: Vec<String> = args.iter().map(ToString::to_string).collect();
                let args = args.join(", ");
                let on = target.map(|target| format!("{target}.")).unwrap_or_default();
                self.fail(
                    id,
                    format!("found no matching overload for '{name}' applied to '{on}({args})'"),
                )
            }
        }
    }

    /// Macros that the parser leaves as calls: their first arguments are new variables.
    fn binding_macro(&mut self, call: &CallExpr) -> Option<Type<'a>> {
        let target = call.target.as_deref()?;
        let variable = |i: usize| match call.args.get(i).map(|arg| &arg.expr) {
            Some(Expr::Ident(name)) => Some(name.clone()),
            _ => None,
        };
        let name = call.func_name.as_str();
        let bound = match (name, call.args.len()) {
            ("optMap" | "optFlatMap" | "sortBy", 2) => 1,
            ("all" | "exists" | "existsOne" | "exists_one", 3)
            | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => 2,
            _ => return None,
        };
        let names: Vec<String> = (0..bound).map(variable).collect::<Option<_>>()?;
        let target = self.infer(target);
        let types = match target.clone() {
            Type::Optional(inner) => vec![*inner],
            Type::List(items) if bound == 1 => vec![*items],
            Type::List(items) => vec![Type::Int, *items],
            Type::Map(keys, values) => vec![*keys, *values],
            _ => vec![Type::Dyn, Type::Dyn],
        };
        let depth = self.scope.len();
        self.scope
            .extend(names.into_iter().zip(types.into_iter().chain(std::iter::repeat(Type::Dyn))));
        let mut last = Type::Dyn;
        for body in call.args.iter().skip(bound) {
            last = self.infer(body);
        }
        self.scope.truncate(depth);
        Some(match name {
            "optMap" => Type::Optional(Box::new(last)),
            "optFlatMap" => last,
            "sortBy" => target,
            "transformList" => Type::List(Box::new(last)),
            "transformMap" | "transformMapEntry" => {
                Type::Map(Box::new(Type::Dyn), Box::new(Type::Dyn))
            }
            _ => Type::Bool,
        })
    }
}

/// `a.b.c` as text.
fn dotted_name(select: &SelectExpr) -> Option<String> {
    let operand = match &select.operand.expr {
        Expr::Ident(name) => name.clone(),
        Expr::Select(inner) => dotted_name(inner)?,
        _ => return None,
    };
    Some(format!("{operand}.{}", select.field))
}
