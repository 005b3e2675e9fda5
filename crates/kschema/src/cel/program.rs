//! Expressions ready to be evaluated.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::parser::Parser;

use super::check::check;
use super::positions::shown;
use super::types::Type;

/// Longer expressions are refused: parsing takes more than linear time.
const MAX_SOURCE: usize = 100_000;
/// Brackets inside brackets; the parser recurses deeply for each.
const MAX_NESTING: usize = 60;

/// A parsed expression.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) expression: IdedExpr,
    pub(super) uses_old_self: bool,
}

/// What an expression must give.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Output {
    Bool,
    Text,
}

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CompileError {
    /// It is not well formed, or refers to what is not there. The text tells where.
    Issues(String),
    /// It gives something else than it must.
    WrongOutput,
}

impl Program {
    /// Parses an expression and checks it for values of type `self_type`.
    pub(super) fn compile(
        source: &str,
        self_type: &Type<'_>,
        optional_old_self: bool,
        output: Output,
    ) -> Result<Self, CompileError> {
        let expression = parse(source).map_err(CompileError::Issues)?;
        let old_self_type = if optional_old_self {
            Type::Optional(Box::new(self_type.clone()))
        } else {
            self_type.clone()
        };
        let checked = check(source, &expression, self_type, &old_self_type);
        if !checked.errors.is_empty() {
            return Err(CompileError::Issues(checked.errors.join("\n")));
        }
        let fits = matches!(
            (&checked.output, output),
            (Type::Dyn | Type::Bool, Output::Bool) | (Type::Dyn | Type::Text, Output::Text)
        );
        if !fits {
            return Err(CompileError::WrongOutput);
        }
        Ok(Self { expression, uses_old_self: checked.uses_old_self })
    }
}

fn parse(source: &str) -> Result<IdedExpr, String> {
    let length = source.chars().count();
    if length > MAX_SOURCE {
        return Err(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {length}, \
             limit {MAX_SOURCE}"
        ));
    }
    if nesting(source) > MAX_NESTING {
        return Err("ERROR: <input>:-1:0: expression recursion limit exceeded: 250".to_owned());
    }
    let parser = || Parser::new().enable_optional_syntax(true).parse(source);
    // The parser panics on some input; that is an error of the input.
    match catch_unwind(AssertUnwindSafe(parser)) {
        Ok(Ok(expression)) => Ok(expression),
        Ok(Err(errors)) => {
            let texts: Vec<String> = errors
                .errors
                .iter()
                .map(|error| {
                    let line = usize::try_from(error.pos.0).unwrap_or(1).max(1);
                    let column = usize::try_from(error.pos.1).unwrap_or(1).max(1);
                    shown(source, line, column, &error.msg)
                })
                .collect();
            Err(texts.join("\n"))
        }
        Err(_) => Err(shown(source, 1, 1, "Syntax error: expression cannot be parsed")),
    }
}

/// How deep brackets and prefix operators nest, at most.
fn nesting(source: &str) -> usize {
    let mut depth: usize = 0;
    let mut prefixes: usize = 0;
    let mut deepest = 0;
    for c in source.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '!' | '-' | '?' => prefixes += 1,
            _ if c.is_whitespace() => {}
            _ => prefixes = 0,
        }
        deepest = deepest.max(depth + prefixes);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use serde_json::json;

    fn compile(source: &str) -> Result<(), CompileError> {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a": {"type": "string"}, "n": {"type": "integer"},
            "l": {"type": "array", "items": {"type": "string"}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "x-y": {"type": "boolean"}, "namespace": {"type": "string"}, "under_score": {"type": "string"},
            "hidden": {"x-kubernetes-preserve-unknown-fields": true},
            "ios": {"x-kubernetes-int-or-string": true},
            "t": {"type": "string", "format": "date-time"}}}))
        .unwrap();
        let self_type = Type::of_schema(&schema, false).unwrap();
        Program::compile(source, &self_type, false, Output::Bool).map(drop)
    }

    #[test]
    fn good_expressions_compile() {
        for source in [
            "self.n > 1",
            "self.m.foo == 'x'",
            "self.a in self.l",
            "type(self.n) == int",
            "self.?a.orValue('x') == 'y'",
            "ip(self.a).family() == 4",
            "quantity(self.a).isLessThan(quantity('1'))",
            "self.x__dash__y",
            "self.under_score == ''",
            "self.l.all(x, x.startsWith('a') && self.l.exists(y, y == x))",
            "self.l.map(x, size(x)).all(n, n < 3)",
            "self.l.filter(x, x != '').size() == 0",
            "self.ios == 1 || self.ios == '1'",
            "type(self.ios) == string ? self.ios.matches('^a$') : self.ios < 5",
            "self.t < timestamp('2020-01-01T00:00:00Z')",
            "has(self.a) && !has(self.n)",
            "self.l.all(i, v, i < 3 && v != '')",
            "self.l == oldSelf.l",
            "sets.contains(self.l, ['a'])",
            "self.l.all(ip, ip.startsWith('1'))",
            "['a', 'b'].exists(x, x == self.a)",
            "self.n > 1.5",
            "duration('1h') > duration('1m')",
            "self.l.isSorted()",
            "cidr('10.0.0.0/8').containsIP('10.1.1.1')",
            "self.a == r'\\d'",
            "// comment\nself.n == 1",
            "has(self.namespace) && self.__namespace__ == self.namespace",
        ] {
            assert_eq!(compile(source), Ok(()), "{source}");
        }
    }

    #[test]
    fn bad_expressions_are_told_as_upstream_does() {
        let cases = [
            ("self.foo > 1", "1:5: undefined field 'foo'", "self.foo > 1", 4),
            (
                "self.a > 1",
                "1:8: found no matching overload for '_>_' applied to '(string, int)'",
                "self.a > 1",
                7,
            ),
            ("foo(self)", "1:4: undeclared reference to 'foo' (in container '')", "foo(self)", 3),
            ("self.foo()", "1:9: undeclared reference to 'foo' (in container '')", "self.foo()", 8),
            (
                "bogus == 1",
                "1:1: undeclared reference to 'bogus' (in container '')",
                "bogus == 1",
                0,
            ),
            (
                "self.a.size() > 'x'",
                "1:15: found no matching overload for '_>_' applied to '(int, string)'",
                "self.a.size() > 'x'",
                14,
            ),
            (
                "self.l.all(x, x > 1)",
                "1:17: found no matching overload for '_>_' applied to '(string, int)'",
                "self.l.all(x, x > 1)",
                16,
            ),
            (
                "self.l[0] == 1",
                "1:11: found no matching overload for '_==_' applied to '(string, int)'",
                "self.l[0] == 1",
                10,
            ),
            (
                "self.n + 1.0 > 2.0",
                "1:8: found no matching overload for '_+_' applied to '(int, double)'",
                "self.n + 1.0 > 2.0",
                7,
            ),
            ("has(self.foo)", "1:4: undefined field 'foo'", "has(self.foo)", 3),
            (
                "self.l.map(x, y)",
                "1:15: undeclared reference to 'y' (in container '')",
                "self.l.map(x, y)",
                14,
            ),
            (
                "self.n in self.l",
                "1:8: found no matching overload for '@in' applied to '(int, list(string))'",
                "self.n in self.l",
                7,
            ),
            ("self.a.foo", "1:7: type 'string' does not support field selection", "self.a.foo", 6),
            ("oldSelf.foo == self.a", "1:8: undefined field 'foo'", "oldSelf.foo == self.a", 7),
            (
                "size(self.n) > 1",
                "1:5: found no matching overload for 'size' applied to '(int)'",
                "size(self.n) > 1",
                4,
            ),
            (
                "!self.a",
                "1:1: found no matching overload for '!_' applied to '(string)'",
                "!self.a",
                0,
            ),
            (
                "self.l.foo == 1",
                "1:7: type 'list(string)' does not support field selection",
                "self.l.foo == 1",
                6,
            ),
            (
                "self.n.startsWith('a')",
                "1:18: found no matching overload for 'startsWith' applied to 'int.(string)'",
                "self.n.startsWith('a')",
                17,
            ),
            (
                "self.a.startsWith(1)",
                "1:18: found no matching overload for 'startsWith' applied to 'string.(int)'",
                "self.a.startsWith(1)",
                17,
            ),
            ("self.hidden == 1", "1:5: undefined field 'hidden'", "self.hidden == 1", 4),
            (
                "self.l.exists(x, x)",
                "1:18: expected type 'bool' but found 'string'",
                "self.l.exists(x, x)",
                17,
            ),
            ("self.a.matches('(')", "1:16: invalid matches argument", "self.a.matches('(')", 15),
            (
                "self.n == null",
                "1:8: found no matching overload for '_==_' applied to '(int, null)'",
                "self.n == null",
                7,
            ),
            (
                "self.n > 1 &&\nself.n > 'x'",
                "2:8: found no matching overload for '_>_' applied to '(int, string)'",
                "self.n > 'x'",
                7,
            ),
        ];
        for (source, message, line, dots) in cases {
            let expected = format!("ERROR: <input>:{message}\n | {line}\n | {}^", ".".repeat(dots));
            assert_eq!(compile(source), Err(CompileError::Issues(expected)), "{source}");
        }
        for source in ["1", "self", "self.n > 1 ? 'a' : 'b'"] {
            assert_eq!(compile(source), Err(CompileError::WrongOutput), "{source}");
        }
    }

    #[test]
    fn garbage_is_an_error() {
        let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
        let prefixes = format!("{}true", "!".repeat(5000));
        let long = "1+".repeat(60_000);
        for source in [
            "self.a +", "", ")", "'", "a b", "\u{0}", "1 ? 2", "A{b: 1}", "self.", &deep,
            &prefixes, &long,
        ] {
            assert!(matches!(compile(source), Err(CompileError::Issues(_))), "{source:.20}");
        }
    }
}
