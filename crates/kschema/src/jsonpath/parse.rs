//! From text to steps.

use serde_json::Value;

use super::{Node, Operator, Range};

/// Filters inside filters; deeper ones are refused.
const MAX_DEPTH: usize = 16;

pub(super) fn parse(text: &str) -> Result<Vec<Node>, String> {
    parse_at(text, 0)
}

fn parse_at(text: &str, depth: usize) -> Result<Vec<Node>, String> {
    if depth > MAX_DEPTH {
        return Err("path nests too deeply".to_owned());
    }
    let mut nodes = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("[?(") {
            rest = filter(after, depth, &mut nodes)?;
            continue;
        }
        if let Some(after) = rest.strip_prefix("..") {
            if nodes.last() == Some(&Node::Recursive) {
                return Err("invalid multiple recursive descent".to_owned());
            }
            nodes.push(Node::Recursive);
            rest = after;
            if rest.chars().next().is_some_and(|c| c == '_' || c.is_alphanumeric()) {
                rest = field(rest, &mut nodes);
            }
            continue;
        }
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match c {
            '\r' | '\n' => return Err("unclosed action".to_owned()),
            ' ' | '@' | '$' => after,
            '[' => array(after, depth, &mut nodes)?,
            '"' | '\'' => quoted(rest, c, &mut nodes)?,
            '.' => field(after, &mut nodes),
            '+' | '-' | '0'..='9' => number(rest, &mut nodes)?,
            _ if c == '_' || c.is_alphanumeric() => word(rest, &mut nodes),
            _ => {
                return Err(format!(
                    "unrecognized character in action: U+{:04X} '{c}'",
                    u32::from(c)
                ));
            }
        };
    }
    Ok(nodes)
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

/// A field up to the next terminator that is not escaped.
fn field<'t>(text: &'t str, nodes: &mut Vec<Node>) -> &'t str {
    let mut end = text.len();
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if is_terminator(c) {
            end = i;
            break;
        }
    }
    let (name, rest) = text.split_at(end);
    nodes.push(if name == "*" { Node::Wildcard } else { Node::Field(name.replace('\\', "")) });
    rest
}

/// Words: only booleans mean something outside of templates.
fn word<'t>(text: &'t str, nodes: &mut Vec<Node>) -> &'t str {
    let end = text.find(is_terminator).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    nodes.push(match word {
        "true" => Node::Literal(Value::Bool(true)),
        "false" => Node::Literal(Value::Bool(false)),
        _ => Node::Word(word.to_owned()),
    });
    rest
}

fn number<'t>(text: &'t str, nodes: &mut Vec<Node>) -> Result<&'t str, String> {
    let signs = usize::from(text.starts_with(['+', '-']));
    let digits = text.get(signs..).unwrap_or_default();
    let end = digits.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(digits.len());
    let (number, rest) = text.split_at(signs + end);
    let value = if let Ok(integer) = number.parse::<i64>() {
        Value::from(integer)
    } else if let Ok(float) = number.parse::<f64>() {
        Value::from(float)
    } else {
        return Err(format!("cannot parse number {number}"));
    };
    nodes.push(Node::Literal(value));
    Ok(rest)
}

fn quoted<'t>(text: &'t str, quote: char, nodes: &mut Vec<Node>) -> Result<&'t str, String> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                Some((_, escaped)) => value.push(escaped),
                None => break,
            },
            '\n' => break,
            _ if c == quote => {
                nodes.push(Node::Literal(Value::from(value)));
                return Ok(text.get(i + c.len_utf8()..).unwrap_or_default());
            }
            _ => value.push(c),
        }
    }
    Err("unterminated quoted string".to_owned())
}

fn array<'t>(text: &'t str, depth: usize, nodes: &mut Vec<Node>) -> Result<&'t str, String> {
    let (inside, rest) = text.split_once(']').ok_or("unterminated array")?;
    if inside.contains('\n') {
        return Err("unterminated array".to_owned());
    }
    let inside = if inside == "*" { ":" } else { inside };
    if inside.contains(',') {
        let parts = inside
            .split(',')
            .map(|part| parse_at(&format!("[{}]", part.trim_matches(' ')), depth + 1))
            .collect::<Result<_, _>>()?;
        nodes.push(Node::Union(parts));
        return Ok(rest);
    }
    let key = inside.strip_prefix('\'').and_then(|key| key.strip_suffix('\''));
    if let Some(key) = key.filter(|key| !key.contains('\'')) {
        nodes.extend(parse_at(&format!(".{key}"), depth + 1)?);
        return Ok(rest);
    }
    nodes.push(Node::Range(range(inside)?));
    Ok(rest)
}

fn range(text: &str) -> Result<Range, String> {
    let invalid = || format!("invalid array index {text}");
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: Option<&&str>| -> Result<Option<i64>, String> {
        match part {
            None | Some(&"") => Ok(None),
            Some(part) => part.parse().map(Some).map_err(|_| invalid()),
        }
    };
    if parts.len() > 3 {
        return Err(invalid());
    }
    let start = number(parts.first())?;
    let single = parts.len() == 1;
    let end = if single { Some(start.unwrap_or(0) + 1) } else { number(parts.get(1))? };
    Ok(Range { start, end, single, step: number(parts.get(2))? })
}

/// What follows `[?(`: a condition, `)` and `]`.
fn filter<'t>(text: &'t str, depth: usize, nodes: &mut Vec<Node>) -> Result<&'t str, String> {
    let mut quote: Option<char> = None;
    let mut closed = false;
    let mut previous = ' ';
    let mut end = None;
    for (i, c) in text.char_indices() {
        match c {
            '\n' => break,
            '"' | '\'' => match quote {
                None => quote = Some(c),
                Some(open) if open == c && previous != '\\' => closed = true,
                Some(_) => {}
            },
            ')' if quote.is_some() == closed => {
                end = Some(i);
                break;
            }
            _ => {}
        }
        previous = c;
    }
    let end = end.ok_or("unterminated filter")?;
    let condition = text.get(..end).unwrap_or_default();
    let rest = text.get(end + 1..).unwrap_or_default();
    let rest = rest.strip_prefix(']').ok_or("unclosed array expect ]")?;
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let operator_at = condition.find(is_operator).filter(|at| *at > 0);
    let node = match operator_at {
        None => Node::Filter { left: parse_at(condition, depth + 1)?, comparison: None },
        Some(at) => {
            let (left, after) = condition.split_at(at);
            let end = after.find(|c| !is_operator(c)).unwrap_or(after.len());
            let (operator, right) = after.split_at(end);
            let operator = match operator {
                "<" => Operator::Less,
                "<=" => Operator::LessOrEqual,
                "==" => Operator::Equal,
                "!=" => Operator::NotEqual,
                ">=" => Operator::GreaterOrEqual,
                ">" => Operator::Greater,
                other => return Err(format!("unrecognized filter operator {other}")),
            };
            let right = parse_at(right, depth + 1)?;
            Node::Filter { left: parse_at(left, depth + 1)?, comparison: Some((operator, right)) }
        }
    };
    nodes.push(node);
    Ok(rest)
}
