//! Evaluating expressions.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, MapExpr, SelectExpr,
};

use super::numbers::{arithmetic, compare};
use super::value::{Key, Val};
use super::{functions, library};

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EvalError {
    pub(super) message: Cow<'static, str>,
    /// The expression did too much; nothing recovers from that.
    pub(super) is_exhausted: bool,
}

impl EvalError {
    pub(super) fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), is_exhausted: false }
    }

    pub(super) fn no_overload() -> Self {
        Self::new("no such overload")
    }

    fn no_key(key: &str) -> Self {
        Self::new(format!("no such key: {key}"))
    }

    fn exhausted() -> Self {
        Self {
            message: "operation cancelled: actual cost limit exceeded".into(),
            is_exhausted: true,
        }
    }
}

type Result<T> = std::result::Result<T, EvalError>;

/// What one evaluation may cost, in steps that are about as large as those of the cost model of
/// Kubernetes.
pub(super) struct Budget {
    left: Cell<u64>,
}

impl Budget {
    pub(super) fn new(steps: u64) -> Self {
        Self { left: Cell::new(steps) }
    }

    pub(super) fn left(&self) -> u64 {
        self.left.get()
    }

    pub(super) fn spend(&self, steps: u64) -> Result<()> {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or_default());
        left.map(|_| ()).ok_or_else(EvalError::exhausted)
    }
}

/// The variables in scope; an error can be bound to the accumulator of a comprehension.
struct Scope<'s, 'a> {
    parent: Option<&'s Scope<'s, 'a>>,
    name: &'s str,
    value: &'s Result<Val<'a>>,
}

/// One evaluation.
pub(super) struct Evaluator<'b, 'a> {
    pub(super) budget: &'b Budget,
    pub(super) self_value: Val<'a>,
    /// `oldSelf`; `None` if there is none.
    pub(super) old_self: Option<Val<'a>>,
}

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn evaluate(&self, expression: &IdedExpr) -> Result<Val<'a>> {
        self.eval(expression, None)
    }

    fn eval(&self, node: &IdedExpr, scope: Option<&Scope<'_, 'a>>) -> Result<Val<'a>> {
        match &node.expr {
            Expr::Literal(literal) => Ok(of_literal(literal)),
            Expr::Ident(name) => {
                self.budget.spend(1)?;
                self.variable(name, scope)
            }
            Expr::Select(select) => self.select(select, scope),
            Expr::Call(call) => self.call(call, scope),
            Expr::List(list) => {
                self.budget.spend(10)?;
                let mut items = Vec::with_capacity(list.elements.len());
                for (i, element) in list.elements.iter().enumerate() {
                    let value = self.eval(element, scope)?;
                    match value {
                        Val::Optional(inner) if list.optional_indices.contains(&i) => {
                            items.extend(inner.map(|inner| inner.as_ref().clone()));
                        }
                        value => items.push(value),
                    }
                }
                Ok(Val::list(items))
            }
            Expr::Map(map) => self.map(map, scope),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, scope),
            Expr::Struct(_) | Expr::Unspecified => Err(EvalError::new("unsupported expression")),
        }
    }

    fn variable(&self, name: &str, scope: Option<&Scope<'_, 'a>>) -> Result<Val<'a>> {
        let mut scope = scope;
        while let Some(frame) = scope {
            if frame.name == name {
                return frame.value.clone();
            }
            scope = frame.parent;
        }
        match name {
            "self" => Ok(self.self_value.clone()),
            "oldSelf" => {
                self.old_self.clone().ok_or_else(|| EvalError::new("no such attribute(s): oldSelf"))
            }
            _ => functions::type_named(name)
                .map(Val::Type)
                .ok_or_else(|| EvalError::new(format!("no such attribute(s): {name}"))),
        }
    }

    fn select(&self, select: &SelectExpr, scope: Option<&Scope<'_, 'a>>) -> Result<Val<'a>> {
        if let Some(name) = qualified_type(select) {
            return Ok(Val::Type(name));
        }
        let operand = self.eval(&select.operand, scope)?;
        self.budget.spend(1)?;
        if select.test {
            return match &operand {
                Val::Map(_) | Val::JsonMap(..) => {
                    Ok(Val::Bool(operand.field(&select.field).is_some()))
                }
                Val::Optional(inner) => Ok(Val::Bool(
                    inner.as_ref().is_some_and(|inner| inner.field(&select.field).is_some()),
                )),
                _ => Err(EvalError::no_overload()),
            };
        }
        match &operand {
            Val::Map(_) | Val::JsonMap(..) => {
                operand.field(&select.field).ok_or_else(|| EvalError::no_key(&select.field))
            }
            Val::Optional(inner) => Ok(Val::Optional(
                inner.as_ref().and_then(|inner| inner.field(&select.field)).map(Rc::new),
            )),
            _ => Err(EvalError::no_overload()),
        }
    }

    fn map(&self, map: &MapExpr, scope: Option<&Scope<'_, 'a>>) -> Result<Val<'a>> {
        self.budget.spend(30)?;
        let mut entries = BTreeMap::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err(EvalError::new("unsupported expression"));
            };
            let key = self.eval(&entry.key, scope)?;
            let key = key.as_key().ok_or_else(|| EvalError::new("unsupported key type"))?;
            match self.eval(&entry.value, scope)? {
                Val::Optional(inner) if entry.optional => {
                    if let Some(inner) = inner {
                        entries.insert(key, inner.as_ref().clone());
                    }
                }
                value => {
                    entries.insert(key, value);
                }
            }
        }
        Ok(Val::Map(Rc::new(entries)))
    }

    fn call(&self, call: &CallExpr, scope: Option<&Scope<'_, 'a>>) -> Result<Val<'a>> {
        match (call.func_name.as_str(), call.args.as_slice()) {
            ("_?_:_", [condition, yes, no]) => match self.eval(condition, scope)? {
                Val::Bool(true) => self.eval(yes, scope),
                Val::Bool(false) => self.eval(no, scope),
                _ => Err(EvalError::no_overload()),
            },
            ("_&&_", [a, b]) => self.logic(a, b, false, scope),
            ("_||_", [a, b]) => self.logic(a, b, true, scope),
            ("@not_strictly_false", [a]) => match self.eval(a, scope) {
                Ok(Val::Bool(flag)) => Ok(Val::Bool(flag)),
                Err(error) if error.is_exhausted => Err(error),
                _ => Ok(Val::Bool(true)),
            },
            (name, _) if call.target.is_some() && is_binding(name, &call.args) => {
                self.binding_call(name, call, scope)
            }
            _ => self.strict_call(call, scope),
        }
    }

    /// `&&` and `||`: an operand that decides the result hides an error in the other.
    fn logic(
        &self,
        a: &IdedExpr,
        b: &IdedExpr,
        deciding: bool,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Result<Val<'a>> {
        let first = self.eval(a, scope);
        match &first {
            Ok(Val::Bool(flag)) if *flag == deciding => return first,
            Err(error) if error.is_exhausted => return first,
            _ => {}
        }
        let second = self.eval(b, scope);
        match (first, second) {
            (_, Ok(Val::Bool(flag))) if flag == deciding => Ok(Val::Bool(deciding)),
            (_, Err(error)) if error.is_exhausted => Err(error),
            (Err(error), _) | (Ok(Val::Bool(_)), Err(error)) => Err(error),
            (Ok(Val::Bool(_)), second @ Ok(Val::Bool(_))) => second,
            _ => Err(EvalError::no_overload()),
        }
    }

    fn strict_call(&self, call: &CallExpr, scope: Option<&Scope<'_, 'a>>) -> Result<Val<'a>> {
        let name = call.func_name.as_str();
        let namespace = namespace_of(call, scope);
        let target = match &call.target {
            Some(target) if namespace.is_none() => Some(self.eval(target, scope)?),
            _ => None,
        };
        let mut arguments = Vec::with_capacity(call.args.len());
        for argument in &call.args {
            arguments.push(self.eval(argument, scope)?);
        }
        let texts = arguments.iter().chain(&target).map(functions::cost).sum::<u64>();
        let extra = functions::extra_cost(name, namespace, target.as_ref(), &arguments);
        self.budget.spend(texts.saturating_add(extra).saturating_add(1))?;
        if target.is_none()
            && namespace.is_none()
            && let [a, b] = arguments.as_slice()
            && let Some(result) = self.operator(name, a, b)
        {
            return result;
        }
        if let (None, None, "!_" | "-_", [a]) = (&target, namespace, name, arguments.as_slice()) {
            return match (name, a) {
                ("!_", Val::Bool(flag)) => Ok(Val::Bool(!flag)),
                ("-_", Val::Int(number)) => number
                    .checked_neg()
                    .map(Val::Int)
                    .ok_or_else(|| EvalError::new("integer overflow")),
                ("-_", Val::Double(number)) => Ok(Val::Double(-number)),
                _ => Err(EvalError::no_overload()),
            };
        }
        if let Some(namespace) = namespace {
            return functions::namespaced(namespace, name, &arguments);
        }
        functions::call(name, target.as_ref(), &arguments)
            .unwrap_or_else(|| library::call(name, None, target.as_ref(), &arguments))
    }

    fn operator(&self, name: &str, a: &Val<'a>, b: &Val<'a>) -> Option<Result<Val<'a>>> {
        let ordered = |accept: fn(std::cmp::Ordering) -> bool| {
            Some(match compare(a, b) {
                Some(order) => Ok(Val::Bool(accept(order))),
                None if matches!((a, b), (Val::Double(_), _) | (_, Val::Double(_))) => {
                    Ok(Val::Bool(false))
                }
                None => Err(EvalError::no_overload()),
            })
        };
        match name {
            "_==_" => Some(Ok(Val::Bool(a.equals(b)))),
            "_!=_" => Some(Ok(Val::Bool(!a.equals(b)))),
            "_<_" => ordered(std::cmp::Ordering::is_lt),
            "_<=_" => ordered(std::cmp::Ordering::is_le),
            "_>_" => ordered(std::cmp::Ordering::is_gt),
            "_>=_" => ordered(std::cmp::Ordering::is_ge),
            "_+_" | "_-_" | "_*_" | "_/_" | "_%_" => {
                let grown = functions::cost(a).saturating_add(functions::cost(b));
                Some(self.budget.spend(grown).and_then(|()| arithmetic(name, a.clone(), b.clone())))
            }
            "@in" => Some(contains(a, b)),
            "_[_]" => Some(index(a, b)),
            "_[?_]" => Some(Ok(Val::Optional(match a {
                Val::Optional(inner) => {
                    inner.as_ref().and_then(|inner| index(inner, b).ok()).map(Rc::new)
                }
                _ => index(a, b).ok().map(Rc::new),
            }))),
            "_?._" => {
                let Val::Text(field) = b else { return Some(Err(EvalError::no_overload())) };
                Some(match a {
                    Val::Optional(inner) => Ok(Val::Optional(
                        inner.as_ref().and_then(|inner| inner.field(field)).map(Rc::new),
                    )),
                    Val::Map(_) | Val::JsonMap(..) => {
                        Ok(Val::Optional(a.field(field).map(Rc::new)))
                    }
                    _ => Err(EvalError::no_overload()),
                })
            }
            _ => None,
        }
    }

    fn comprehension(
        &self,
        comprehension: &ComprehensionExpr,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Result<Val<'a>> {
        let range = self.eval(&comprehension.iter_range, scope)?;
        let elements = elements(&range)?;
        let mut accumulated = self.eval(&comprehension.accu_init, scope);
        for element in elements {
            self.budget.spend(1)?;
            let element = Ok(element);
            accumulated = {
                let outer =
                    Scope { parent: scope, name: &comprehension.accu_var, value: &accumulated };
                let inner =
                    Scope { parent: Some(&outer), name: &comprehension.iter_var, value: &element };
                match self.eval(&comprehension.loop_cond, Some(&outer)) {
                    Ok(Val::Bool(true)) => {}
                    Ok(_) => break,
                    Err(error) => return Err(error),
                }
                match appended(&comprehension.loop_step, &comprehension.accu_var) {
                    Some(step) => {
                        let more = self.append(step, Some(&inner))?;
                        push(accumulated, more)
                    }
                    None => self.eval(&comprehension.loop_step, Some(&inner)),
                }
            };
            if let Err(error) = &accumulated
                && error.is_exhausted
            {
                return accumulated;
            }
        }
        let frame = Scope { parent: scope, name: &comprehension.accu_var, value: &accumulated };
        self.eval(&comprehension.result, Some(&frame))
    }

    /// What one step of `map` or `filter` adds to the result.
    fn append(&self, step: Appended<'_>, scope: Option<&Scope<'_, 'a>>) -> Result<Option<Val<'a>>> {
        if let Some(condition) = step.condition {
            match self.eval(condition, scope)? {
                Val::Bool(true) => {}
                Val::Bool(false) => return Ok(None),
                _ => return Err(EvalError::no_overload()),
            }
        }
        self.budget.spend(1)?;
        self.eval(step.element, scope).map(Some)
    }

    /// Macros that the parser leaves as calls: those that bind two variables, and those of
    /// optional values.
    fn binding_call(
        &self,
        name: &str,
        call: &CallExpr,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Result<Val<'a>> {
        let Some(target) = &call.target else { return Err(EvalError::no_overload()) };
        let target = self.eval(target, scope)?;
        if let ("optMap" | "optFlatMap", [variable, body]) = (name, call.args.as_slice()) {
            let Val::Optional(inner) = target else { return Err(EvalError::no_overload()) };
            let Some(inner) = inner else { return Ok(Val::Optional(None)) };
            let value = Ok(inner.as_ref().clone());
            let frame = Scope { parent: scope, name: bound_name(variable)?, value: &value };
            let result = self.eval(body, Some(&frame))?;
            return Ok(match (name, result) {
                ("optFlatMap", optional @ Val::Optional(_)) => optional,
                ("optFlatMap", _) => return Err(EvalError::no_overload()),
                (_, result) => Val::Optional(Some(Rc::new(result))),
            });
        }
        if let ("sortBy", [variable, body]) = (name, call.args.as_slice()) {
            return self.sort_by(&target, bound_name(variable)?, body, scope);
        }
        let (Some(first), Some(second)) = (call.args.first(), call.args.get(1)) else {
            return Err(EvalError::no_overload());
        };
        let names = (bound_name(first)?, bound_name(second)?);
        let (condition, body) = match call.args.get(2..).unwrap_or_default() {
            [body] => (None, body),
            [condition, body] => (Some(condition), body),
            _ => return Err(EvalError::no_overload()),
        };
        let mut result = functions::TwoVariables::new(name);
        for (key, value) in pairs(&target)? {
            self.budget.spend(1)?;
            let (key, value) = (Ok(key), Ok(value));
            let outer = Scope { parent: scope, name: names.0, value: &key };
            let inner = Scope { parent: Some(&outer), name: names.1, value: &value };
            if let Some(condition) = condition
                && !matches!(self.eval(condition, Some(&inner))?, Val::Bool(true))
            {
                continue;
            }
            let item = self.eval(body, Some(&inner));
            if let Err(error) = &item
                && error.is_exhausted
            {
                return item;
            }
            let Ok(key) = key else { continue };
            if result.take(&key, item)? {
                break;
            }
        }
        result.finish()
    }
}

impl<'a> Evaluator<'_, 'a> {
    /// The items of a list in the order of what `body` gives for them.
    fn sort_by(
        &self,
        list: &Val<'a>,
        variable: &str,
        body: &IdedExpr,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Result<Val<'a>> {
        let mut keyed = Vec::new();
        for item in list.items().ok_or_else(EvalError::no_overload)? {
            self.budget.spend(1)?;
            let value = Ok(item);
            let frame = Scope { parent: scope, name: variable, value: &value };
            let key = self.eval(body, Some(&frame))?;
            keyed.push((key, value?));
        }
        let mut comparable = true;
        keyed.sort_by(|(a, _), (b, _)| {
            compare(a, b).unwrap_or_else(|| {
                comparable = false;
                std::cmp::Ordering::Equal
            })
        });
        if !comparable {
            return Err(EvalError::no_overload());
        }
        Ok(Val::list(keyed.into_iter().map(|(_, item)| item).collect()))
    }
}

/// Names of calls whose first arguments are variables and not values.
fn is_binding(name: &str, arguments: &[IdedExpr]) -> bool {
    let first = matches!(arguments.first().map(|a| &a.expr), Some(Expr::Ident(_)));
    let count = arguments.len();
    first
        && match name {
            "optMap" | "optFlatMap" | "sortBy" => count == 2,
            "all" | "exists" | "existsOne" | "exists_one" => count == 3,
            "transformList" | "transformMap" | "transformMapEntry" => count == 3 || count == 4,
            _ => false,
        }
}

fn bound_name(node: &IdedExpr) -> Result<&str> {
    match &node.expr {
        Expr::Ident(name) => Ok(name),
        _ => Err(EvalError::no_overload()),
    }
}

/// The library that a call names: `sets` in `sets.contains(a, b)`.
fn namespace_of<'e>(call: &'e CallExpr, scope: Option<&Scope<'_, '_>>) -> Option<&'e str> {
    let Some(Expr::Ident(name)) = call.target.as_deref().map(|target| &target.expr) else {
        return None;
    };
    let mut scope = scope;
    while let Some(frame) = scope {
        if frame.name == name {
            return None;
        }
        scope = frame.parent;
    }
    functions::NAMESPACES.contains(&name.as_str()).then_some(name)
}

/// Types with a dot in their name.
fn qualified_type(select: &SelectExpr) -> Option<&'static str> {
    let mut name = select.field.clone();
    let mut operand = &select.operand.expr;
    loop {
        match operand {
            Expr::Select(inner) => {
                name = format!("{}.{name}", inner.field);
                operand = &inner.operand.expr;
            }
            Expr::Ident(first) => return functions::type_named(&format!("{first}.{name}")),
            _ => return None,
        }
    }
}

/// A step that only appends to the accumulator, as `map` and `filter` have it.
#[derive(Clone, Copy)]
struct Appended<'e> {
    condition: Option<&'e IdedExpr>,
    element: &'e IdedExpr,
}

fn appended<'e>(step: &'e IdedExpr, accumulator: &str) -> Option<Appended<'e>> {
    let Expr::Call(call) = &step.expr else { return None };
    let is_accumulator = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(n) if n == accumulator);
    match (call.func_name.as_str(), call.args.as_slice()) {
        ("_+_", [accumulator, more]) if is_accumulator(accumulator) => match &more.expr {
            Expr::List(list) if list.optional_indices.is_empty() => {
                match list.elements.as_slice() {
                    [element] => Some(Appended { condition: None, element }),
                    _ => None,
                }
            }
            _ => None,
        },
        ("_?_:_", [condition, yes, no]) if is_accumulator(no) => {
            let inner = appended(yes, accumulator)?;
            inner
                .condition
                .is_none()
                .then_some(Appended { condition: Some(condition), element: inner.element })
        }
        _ => None,
    }
}

fn push<'a>(accumulated: Result<Val<'a>>, more: Option<Val<'a>>) -> Result<Val<'a>> {
    match (accumulated, more) {
        (accumulated, None) => accumulated,
        (Ok(Val::List(mut items)), Some(item)) => {
            Rc::make_mut(&mut items).push(item);
            Ok(Val::List(items))
        }
        (Ok(_), Some(_)) => Err(EvalError::no_overload()),
        (error, _) => error,
    }
}

/// What a comprehension goes through: items of a list, or keys of a map.
fn elements<'a>(range: &Val<'a>) -> Result<Vec<Val<'a>>> {
    if let Some(items) = range.items() {
        return Ok(items);
    }
    match range.entries() {
        Some(entries) => Ok(entries.into_keys().map(of_key).collect()),
        None => Err(EvalError::no_overload()),
    }
}

/// Indices and items of a list, or keys and values of a map.
fn pairs<'a>(range: &Val<'a>) -> Result<Vec<(Val<'a>, Val<'a>)>> {
    if let Some(items) = range.items() {
        return Ok((0..).map(Val::Int).zip(items).collect());
    }
    match range.entries() {
        Some(entries) => Ok(entries.into_iter().map(|(k, v)| (of_key(k), v)).collect()),
        None => Err(EvalError::no_overload()),
    }
}

fn of_key<'a>(key: Key) -> Val<'a> {
    match key {
        Key::Bool(flag) => Val::Bool(flag),
        Key::Int(number) => Val::Int(number),
        Key::Uint(number) => Val::Uint(number),
        Key::Text(text) => Val::Text(text),
    }
}

fn of_literal<'a>(literal: &LiteralValue) -> Val<'a> {
    match literal {
        LiteralValue::Boolean(flag) => Val::Bool(*flag.inner()),
        LiteralValue::Bytes(bytes) => Val::Bytes(Rc::from(bytes.inner())),
        LiteralValue::Double(number) => Val::Double(*number.inner()),
        LiteralValue::Int(number) => Val::Int(*number.inner()),
        LiteralValue::Null => Val::Null,
        LiteralValue::String(text) => Val::text(text.inner()),
        LiteralValue::UInt(number) => Val::Uint(*number.inner()),
    }
}

fn contains<'a>(value: &Val<'a>, container: &Val<'a>) -> Result<Val<'a>> {
    if let Some(items) = container.items() {
        return Ok(Val::Bool(items.iter().any(|item| item.equals(value))));
    }
    if !matches!(container, Val::Map(_) | Val::JsonMap(..)) {
        return Err(EvalError::no_overload());
    }
    if let Val::Text(name) = value {
        return Ok(Val::Bool(container.field(name).is_some()));
    }
    let entries = container.entries().unwrap_or_default();
    Ok(Val::Bool(value.as_key().is_some_and(|key| entries.contains_key(&key))))
}

fn index<'a>(container: &Val<'a>, at: &Val<'a>) -> Result<Val<'a>> {
    if let Val::Optional(inner) = container {
        return Ok(Val::Optional(
            inner.as_ref().and_then(|inner| index(inner, at).ok()).map(Rc::new),
        ));
    }
    if matches!(container, Val::List(_) | Val::JsonList(..)) {
        let Some(Key::Int(position)) = at.as_key() else {
            return Err(EvalError::new(format!(
                "unsupported index type '{}' in list",
                at.type_name()
            )));
        };
        return usize::try_from(position)
            .ok()
            .and_then(|position| container.item(position))
            .ok_or_else(|| EvalError::new(format!("index out of bounds: {position}")));
    }
    match (container, at) {
        (Val::Map(_) | Val::JsonMap(..), Val::Text(name)) => {
            container.field(name).ok_or_else(|| EvalError::no_key(name))
        }
        (Val::Map(_) | Val::JsonMap(..), _) => {
            let key = at.as_key().ok_or_else(EvalError::no_overload)?;
            let entries = container.entries().unwrap_or_default();
            let found = entries.get(&key).cloned();
            found.ok_or_else(|| EvalError::no_key(&functions::shown(at)))
        }
        _ => Err(EvalError::no_overload()),
    }
}
