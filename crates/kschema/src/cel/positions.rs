//! Where in its source each part of an expression stands.
//!
//! The parser keeps positions to itself. Walking the tree in the order in which it is written
//! meets the tokens in their order, so that each node takes the next token that fits it.

use std::collections::{BTreeMap, VecDeque};

use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};

/// Offsets of nodes by their id, in characters.
pub(super) struct Positions {
    offsets: BTreeMap<u64, usize>,
}

impl Positions {
    pub(super) fn new(source: &str, expression: &IdedExpr) -> Self {
        let mut walk = Walk { tokens: tokens(source), offsets: BTreeMap::new() };
        walk.visit(expression);
        Self { offsets: walk.offsets }
    }

    pub(super) fn of(&self, id: u64) -> usize {
        self.offsets.get(&id).copied().unwrap_or_default()
    }
}

/// An error at an offset, with the line it is in and a mark below it.
pub(super) fn located(source: &str, offset: usize, message: &str) -> String {
    let mut line = 1;
    let mut start = 0;
    for (i, c) in source.chars().enumerate().take(offset) {
        if c == '\n' {
            line += 1;
            start = i + 1;
        }
    }
    shown(source, line, offset - start + 1, message)
}

/// An error at a line and column, both counted from 1.
pub(super) fn shown(source: &str, line: usize, column: usize, message: &str) -> String {
    let text = source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let dots = ".".repeat(column.saturating_sub(1));
    format!("ERROR: <input>:{line}:{column}: {message}\n | {text}\n | {dots}^")
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A name that is a variable.
    Name,
    /// A dot before this name, or its parenthesis if it is called.
    Field,
    /// The parenthesis after this name.
    Call,
    Operator,
    Literal,
}

type Tokens = BTreeMap<(Kind, String), VecDeque<usize>>;

const OPERATORS: [&str; 19] = [
    "&&", "||", "==", "!=", "<=", ">=", "[?", ".?", "+", "-", "*", "/", "%", "<", ">", "!", "?",
    "[", "in",
];

fn tokens(source: &str) -> Tokens {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Tokens::new();
    let mut add = |kind: Kind, text: &str, at: usize| {
        tokens.entry((kind, text.to_owned())).or_default().push_back(at);
    };
    let mut at = 0;
    let mut dot: Option<usize> = None;
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        if c.is_whitespace() {
            at += 1;
        } else if c == '/' && next == Some('/') {
            while chars.get(at).is_some_and(|c| *c != '\n') {
                at += 1;
            }
        } else if c == '"'
            || c == '\''
            || (matches!(c, 'r' | 'b' | 'R' | 'B') && matches!(next, Some('"' | '\'')))
        {
            add(Kind::Literal, "", at);
            at = string_end(&chars, at);
            dot = None;
        } else if c.is_alphabetic() || c == '_' {
            let end = end_of(&chars, at, |c| c.is_alphanumeric() || c == '_');
            let name: String = chars.get(at..end).unwrap_or_default().iter().collect();
            let open = end_of(&chars, end, char::is_whitespace);
            if name == "in" {
                add(Kind::Operator, "in", at);
            } else if matches!(name.as_str(), "true" | "false" | "null") {
                add(Kind::Literal, "", at);
            } else if chars.get(open) == Some(&'(') {
                add(Kind::Call, &name, open);
            } else if let Some(dot) = dot {
                add(Kind::Field, &name, dot);
            } else {
                add(Kind::Name, &name, at);
            }
            dot = None;
            at = end;
        } else if c.is_ascii_digit() {
            add(Kind::Literal, "", at);
            let end = end_of(&chars, at, |c| c.is_alphanumeric() || c == '.');
            at = end;
        } else {
            let pair: String =
                chars.get(at..(at + 2).min(chars.len())).unwrap_or_default().iter().collect();
            let operator =
                OPERATORS.iter().find(|o| **o == pair).copied().or_else(|| {
                    OPERATORS.iter().find(|o| o.len() == 1 && o.starts_with(c)).copied()
                });
            match operator {
                Some(".?") => {
                    dot = Some(at);
                    add(Kind::Operator, ".?", at);
                }
                Some(operator) => add(Kind::Operator, operator, at),
                None if c == '.' => dot = Some(at),
                None => {}
            }
            at += operator.map_or(1, str::len);
        }
    }
    tokens
}

/// Where characters of a kind end.
fn end_of(chars: &[char], from: usize, is_part: impl Fn(char) -> bool) -> usize {
    let rest = chars.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|c| is_part(**c)).count()
}

/// The end of the string literal that starts at `at`, prefix included.
fn string_end(chars: &[char], at: usize) -> usize {
    let mut at = at;
    let raw = matches!(chars.get(at), Some('r' | 'R'));
    if matches!(chars.get(at), Some('r' | 'R' | 'b' | 'B')) {
        at += 1;
    }
    let Some(&quote) = chars.get(at) else { return at };
    let triple = chars.get(at + 1) == Some(&quote) && chars.get(at + 2) == Some(&quote);
    at += if triple { 3 } else { 1 };
    while let Some(&c) = chars.get(at) {
        if c == '\\' && !raw {
            at += 2;
        } else if c == quote
            && (!triple || (chars.get(at + 1) == Some(&quote) && chars.get(at + 2) == Some(&quote)))
        {
            return at + if triple { 3 } else { 1 };
        } else {
            at += 1;
        }
    }
    at
}

struct Walk {
    tokens: Tokens,
    offsets: BTreeMap<u64, usize>,
}

impl Walk {
    fn take(&mut self, kind: Kind, text: &str) -> Option<usize> {
        self.tokens.get_mut(&(kind, text.to_owned()))?.pop_front()
    }

    fn mark(&mut self, id: u64, kind: Kind, text: &str) {
        if let Some(offset) = self.take(kind, text) {
            self.offsets.insert(id, offset);
        }
    }

    fn visit(&mut self, node: &IdedExpr) {
        match &node.expr {
            Expr::Ident(name) => self.mark(node.id, Kind::Name, name),
            Expr::Literal(_) => self.mark(node.id, Kind::Literal, ""),
            Expr::Select(select) => {
                if select.test {
                    self.mark(node.id, Kind::Call, "has");
                    self.visit(&select.operand);
                    self.take(Kind::Field, &select.field);
                } else {
                    self.visit(&select.operand);
                    self.mark(node.id, Kind::Field, &select.field);
                }
            }
            Expr::Call(call) => {
                self.visit_call(node.id, &call.func_name, call.target.as_deref(), &call.args);
            }
            Expr::List(list) => {
                self.mark(node.id, Kind::Operator, "[");
                for element in &list.elements {
                    self.visit(element);
                }
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.visit(&entry.key);
                        self.visit(&entry.value);
                    }
                }
            }
            Expr::Comprehension(comprehension) => {
                self.visit(&comprehension.iter_range);
                for name in ["all", "exists", "exists_one", "existsOne", "map", "filter"] {
                    // The macro that comes first in the source is the one being walked.
                    let first = |name: &str| {
                        self.tokens.get(&(Kind::Call, name.to_owned())).and_then(|q| q.front())
                    };
                    let others = ["all", "exists", "exists_one", "existsOne", "map", "filter"];
                    let earliest = others.iter().filter_map(|o| first(o)).min();
                    if first(name).is_some() && first(name) == earliest {
                        self.mark(node.id, Kind::Call, name);
                        break;
                    }
                }
                self.take(Kind::Name, &comprehension.iter_var);
                for part in user_parts(&comprehension.loop_step, &comprehension.accu_var) {
                    self.visit(part);
                }
            }
            Expr::Struct(_) | Expr::Unspecified => {}
        }
    }

    fn visit_call(&mut self, id: u64, name: &str, target: Option<&IdedExpr>, args: &[IdedExpr]) {
        let symbol = match name {
            "@in" => Some("in"),
            "_?_:_" => Some("?"),
            "_[_]" => Some("["),
            "_[?_]" => Some("[?"),
            "_?._" => Some(".?"),
            "!_" => Some("!"),
            "-_" => Some("-"),
            _ => name.strip_prefix('_').and_then(|n| n.strip_suffix('_')),
        };
        match (symbol, args) {
            (Some(symbol), [operand]) => {
                self.mark(id, Kind::Operator, symbol);
                self.visit(operand);
            }
            (Some(symbol), [first, rest @ ..]) => {
                self.visit(first);
                self.mark(id, Kind::Operator, symbol);
                for argument in rest {
                    self.visit(argument);
                }
            }
            _ => {
                if let Some(target) = target {
                    self.visit(target);
                }
                self.mark(id, Kind::Call, name);
                for argument in args {
                    self.visit(argument);
                }
            }
        }
    }
}

/// The parts of a step of a comprehension that the user wrote; the macro made the rest.
pub(super) fn user_parts<'e>(step: &'e IdedExpr, accumulator: &str) -> Vec<&'e IdedExpr> {
    let is_accumulator = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(n) if n == accumulator);
    let Expr::Call(call) = &step.expr else { return vec![step] };
    match (call.func_name.as_str(), call.args.as_slice()) {
        ("_&&_" | "_||_", [a, b]) if is_accumulator(a) => vec![b],
        ("_+_", [a, b]) if is_accumulator(a) => match &b.expr {
            Expr::List(list) => list.elements.iter().collect(),
            _ => vec![],
        },
        ("_?_:_", [condition, yes, no]) if is_accumulator(no) => {
            let mut parts = vec![condition];
            parts.extend(user_parts(yes, accumulator));
            parts
        }
        _ => vec![step],
    }
}
