//! Label selectors: `app=web,tier in (a,b),!legacy`, and their object form.

use std::fmt;

use fleetwright_kschema::{
    field::{FieldError, Path, aggregate_message},
    names,
};
use serde_json::Value;

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`, `==`, `in`: present, with one of the values.
    In,
    /// `!=`, `notin`: absent, or with none of the values.
    NotIn,
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// An integer greater than the value.
    GreaterThan,
    /// An integer less than the value.
    LessThan,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// The comparison.
    pub operator: Operator,
    /// What it is compared with.
    pub values: Vec<String>,
}

/// Requirements that must all hold. Without any, everything matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(pub Vec<Requirement>);

impl LabelSelector {
    /// Reads a selector as clients write it in `labelSelector`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = Parser::new(text).parse()?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self(requirements))
    }

    /// Reads the object form (`matchLabels`, `matchExpressions`). A missing selector matches
    /// nothing and is `None`; an empty one matches everything.
    pub fn from_object(selector: Option<&Value>) -> Option<Self> {
        let selector = selector.filter(|s| !s.is_null())?;
        let mut requirements = Vec::new();
        if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
            for (key, value) in labels {
                requirements.push(Requirement {
                    key: key.clone(),
                    operator: Operator::In,
                    values: vec![value.as_str().unwrap_or_default().to_owned()],
                });
            }
        }
        for expression in crate::object::list(selector, &["matchExpressions"]) {
            let operator = match crate::object::text(expression, &["operator"]) {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                _ => return None,
            };
            requirements.push(Requirement {
                key: crate::object::text(expression, &["key"]).to_owned(),
                operator,
                values: crate::object::list(expression, &["values"])
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
            });
        }
        Some(Self(requirements))
    }

    /// Whether every requirement holds; `label` gives a label's value.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(label(&requirement.key)))
    }

    /// Whether the labels of `object` match.
    pub fn matches_object(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        self.matches(|key| labels?.get(key)?.as_str())
    }

    /// Whether there are no requirements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        match self.operator {
            Operator::In => value.is_some_and(|v| self.values.iter().any(|w| w == v)),
            Operator::NotIn => value.is_none_or(|v| self.values.iter().all(|w| w != v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.compare(value, |a, b| a > b),
            Operator::LessThan => self.compare(value, |a, b| a < b),
        }
    }

    fn compare(&self, value: Option<&str>, holds: fn(i64, i64) -> bool) -> bool {
        let label = value.and_then(|v| v.parse().ok());
        let bound = self.values.first().and_then(|v| v.parse().ok());
        matches!((label, bound), (Some(a), Some(b)) if holds(a, b))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let first = self.values.first().map_or("", String::as_str);
        match self.operator {
            Operator::In if self.values.len() == 1 => write!(f, "{key}={first}"),
            Operator::NotIn if self.values.len() == 1 => write!(f, "{key}!={first}"),
            Operator::In => write!(f, "{key} in ({})", self.values.join(",")),
            Operator::NotIn => write!(f, "{key} notin ({})", self.values.join(",")),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{first}"),
            Operator::LessThan => write!(f, "{key}<{first}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Error,
    End,
    Close,
    Comma,
    Not,
    Operator(&'static str),
    Identifier,
    Open,
}

struct Parser {
    tokens: Vec<(Token, String)>,
    at: usize,
}

const SPECIAL: &[char] = &['=', '!', '(', ')', ',', '>', '<'];
const BINARY_OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

impl Parser {
    fn new(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = text.trim_start_matches([' ', '\t', '\r', '\n']);
        while let Some(first) = rest.chars().next() {
            let (token, length) =
                if SPECIAL.contains(&first) { special_token(rest) } else { word_token(rest) };
            tokens.push(match token {
                Token::Error => {
                    (token, format!("error expected: keyword found '{}'", &rest[..length]))
                }
                _ => (token, rest[..length].to_owned()),
            });
            rest = rest[length..].trim_start_matches([' ', '\t', '\r', '\n']);
        }
        tokens.push((Token::End, String::new()));
        Self { tokens, at: 0 }
    }

    /// The token at hand. In the place of a value, `in` and `notin` are ordinary words.
    fn peek(&self, as_value: bool) -> (Token, &str) {
        let (token, literal) = self
            .tokens
            .get(self.at)
            .or(self.tokens.last())
            .map_or((Token::End, ""), |(token, literal)| (*token, literal.as_str()));
        match token {
            Token::Operator("in" | "notin") if as_value => (Token::Identifier, literal),
            _ => (token, literal),
        }
    }

    fn next(&mut self, as_value: bool) -> (Token, String) {
        let (token, literal) = self.peek(as_value);
        let literal = literal.to_owned();
        self.at += 1;
        (token, literal)
    }

    fn parse(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            let (token, literal) = self.peek(true);
            match token {
                Token::Identifier | Token::Not => {
                    let requirement = self
                        .requirement()
                        .map_err(|why| format!("unable to parse requirement: {why}"))?;
                    requirements.push(requirement);
                    match self.next(true) {
                        (Token::End, _) => return Ok(requirements),
                        (Token::Comma, _) => {
                            let (after, literal) = self.peek(true);
                            if !matches!(after, Token::Identifier | Token::Not) {
                                return Err(format!(
                                    "found '{literal}', expected: identifier after ','"
                                ));
                            }
                        }
                        (_, literal) => {
                            return Err(format!(
                                "found '{literal}', expected: ',' or 'end of string'"
                            ));
                        }
                    }
                }
                Token::End => return Ok(requirements),
                _ => {
                    return Err(format!(
                        "found '{literal}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.next(true);
        let negated = token == Token::Not;
        if negated {
            (token, key) = self.next(true);
        }
        if token != Token::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let problems = names::qualified_name(&key);
        if !problems.is_empty() {
            return Err(
                FieldError::invalid(&Path::root(), key.as_str(), problems.join("; ")).to_string()
            );
        }
        if matches!(self.peek(true).0, Token::End | Token::Comma) {
            let operator = if negated { Operator::DoesNotExist } else { Operator::Exists };
            return Ok(Requirement { key, operator, values: Vec::new() });
        }
        if negated {
            return Ok(Requirement { key, operator: Operator::DoesNotExist, values: Vec::new() });
        }
        let (operator, set) = match self.next(false) {
            (Token::Operator("in"), _) => (Operator::In, true),
            (Token::Operator("notin"), _) => (Operator::NotIn, true),
            (Token::Operator("=" | "=="), _) => (Operator::In, false),
            (Token::Operator("!="), _) => (Operator::NotIn, false),
            (Token::Operator(">"), _) => (Operator::GreaterThan, false),
            (Token::Operator("<"), _) => (Operator::LessThan, false),
            (_, literal) => return Err(format!("found '{literal}', expected: {BINARY_OPERATORS}")),
        };
        let mut values = if set { self.values()? } else { vec![self.exact_value()?] };
        values.sort();
        values.dedup();
        check_values(&key, operator, &values)?;
        Ok(Requirement { key, operator, values })
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.peek(true).0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.next(true) {
            (Token::Identifier, literal) => Ok(literal),
            (_, literal) => Err(format!("found '{literal}', expected: identifier")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next(true) {
            (Token::Open, _) => {}
            (_, literal) => return Err(format!("found '{literal}' expected: '('")),
        }
        let (token, first) = self.peek(true);
        match token {
            Token::Identifier | Token::Comma => {
                let first = first.to_owned();
                let values = self.identifiers()?;
                match self.next(true) {
                    (Token::Close, _) => Ok(values),
                    _ => Err(format!("found '{first}', expected: ')'")),
                }
            }
            Token::Close => {
                self.at += 1;
                Ok(vec![String::new()])
            }
            _ => Err(format!("found '{first}', expected: ',', ')' or identifier")),
        }
    }

    fn identifiers(&mut self) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        loop {
            match self.next(true) {
                (Token::Identifier, literal) => {
                    values.push(literal);
                    match self.peek(true) {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => return Ok(values),
                        (_, literal) => {
                            return Err(format!("found '{literal}', expected: ',' or ')'"));
                        }
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.peek(true).0 {
                        Token::Close => {
                            values.push(String::new());
                            return Ok(values);
                        }
                        Token::Comma => values.push(String::new()),
                        _ => {}
                    }
                }
                (_, literal) => {
                    return Err(format!("found '{literal}', expected: ',', or identifier"));
                }
            }
        }
    }
}

fn check_values(key: &str, operator: Operator, values: &[String]) -> Result<(), String> {
    let path = Path::new("values");
    let mut errors = Vec::new();
    if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
        for (index, value) in values.iter().enumerate() {
            if value.parse::<i64>().is_err() {
                errors.push(FieldError::invalid(
                    &path.index(index),
                    value.as_str(),
                    "for 'Gt', 'Lt' operators, the value must be an integer",
                ));
            }
        }
    }
    for (index, value) in values.iter().enumerate() {
        let problems = names::label_value(value);
        if !problems.is_empty() {
            errors.push(FieldError::invalid(
                &path.index(index).key(key),
                value.as_str(),
                problems.join("; "),
            ));
        }
    }
    aggregate_message(&errors).map_or(Ok(()), Err)
}

/// The longest operator at the start of `text`, and its length.
fn special_token(text: &str) -> (Token, usize) {
    const TOKENS: &[(&str, Token)] = &[
        ("==", Token::Operator("==")),
        ("!=", Token::Operator("!=")),
        ("=", Token::Operator("=")),
        (">", Token::Operator(">")),
        ("<", Token::Operator("<")),
        ("!", Token::Not),
        (")", Token::Close),
        ("(", Token::Open),
        (",", Token::Comma),
    ];
    TOKENS
        .iter()
        .find(|(literal, _)| text.starts_with(literal))
        .map_or((Token::Error, text.len()), |(literal, token)| (*token, literal.len()))
}

fn word_token(text: &str) -> (Token, usize) {
    let length = text
        .find(|c: char| SPECIAL.contains(&c) || matches!(c, ' ' | '\t' | '\r' | '\n'))
        .unwrap_or(text.len());
    match &text[..length] {
        "in" => (Token::Operator("in"), length),
        "notin" => (Token::Operator("notin"), length),
        _ => (Token::Identifier, length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        LabelSelector::parse(selector)
            .unwrap()
            .matches(|key| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v))
    }

    #[test]
    fn matching() {
        let labels = [("app", "web"), ("tier", "a"), ("n", "5")];
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=b", true),
            ("app in (web,db)", true),
            ("app notin (web)", false),
            ("missing", false),
            ("!missing", true),
            ("n>4", true),
            ("n<4", false),
            ("tier in ()", false),
            ("in=x", false),
        ] {
            assert_eq!(matches(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn refusals() {
        for (selector, message) in [
            ("a=b,", "found '', expected: identifier after ','"),
            (
                "a b",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            ),
            ("=b", "found '=', expected: !, identifier, or 'end of string'"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap_err(), message, "{selector}");
        }
    }

    #[test]
    fn prints() {
        for text in ["a=b", "a!=b", "a in (b,c)", "!a", "a", "a>1"] {
            assert_eq!(LabelSelector::parse(text).unwrap().to_string(), text);
        }
    }
}
