//! JSON as Go reads it: the same syntax errors, fields in order, duplicates kept.
//!
//! `serde_json` would lose what kube-apiserver reports about a body: the words of a syntax
//! error, which of two wrong fields came first, and fields that occur twice.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fleetwright_kproto::{MAX_DEPTH, go_float};
use serde_json::{Map, Value};

/// A JSON value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, in its own digits.
    Number(String),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Node>),
    /// An object: fields in order, duplicates kept.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// What Go calls such a value in messages.
    pub fn go_kind(&self) -> &'static str {
        match self {
            Node::Null => "null",
            Node::Bool(_) => "bool",
            Node::Number(_) => "number",
            Node::String(_) => "string",
            Node::Array(_) => "array",
            Node::Object(_) => "object",
        }
    }

    /// The value; of duplicate fields the last one counts.
    pub fn to_value(&self) -> Value {
        match self {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Number(text) => number(text),
            Node::String(text) => Value::String(text.clone()),
            Node::Array(list) => Value::Array(list.iter().map(Node::to_value).collect()),
            Node::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), value.to_value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// The same as [`Node::to_value`] without copies.
    pub fn into_value(self) -> Value {
        match self {
            Node::String(text) => Value::String(text),
            Node::Array(list) => Value::Array(list.into_iter().map(Node::into_value).collect()),
            Node::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, value.into_value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            plain => plain.to_value(),
        }
    }

    /// The value of a field; of duplicates the last one.
    pub fn get(&self, name: &str) -> Option<&Node> {
        let Node::Object(fields) = self else { return None };
        fields.iter().rev().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// Messages about fields that occur twice, as the strict decoding of any kind reports them.
    pub fn duplicates(&self) -> Vec<String> {
        let mut strict = Strict::default();
        self.find_duplicates("", &mut strict);
        strict.messages
    }

    pub(super) fn find_duplicates(&self, path: &str, strict: &mut Strict) {
        // There hardly ever are any, and paths are costly.
        if self.has_duplicates() {
            self.tell_duplicates(path, strict);
        }
    }

    fn has_duplicates(&self) -> bool {
        match self {
            Node::Array(list) => list.iter().any(Node::has_duplicates),
            Node::Object(fields) => {
                repeats(fields) || fields.iter().any(|(_, value)| value.has_duplicates())
            }
            _ => false,
        }
    }

    fn tell_duplicates(&self, path: &str, strict: &mut Strict) {
        match self {
            Node::Array(list) => {
                for (index, item) in list.iter().enumerate() {
                    item.tell_duplicates(&format!("{path}[{index}]"), strict);
                }
            }
            Node::Object(fields) => {
                let mut seen = BTreeSet::new();
                for (name, value) in fields {
                    let path = join(path, name);
                    if !seen.insert(name) {
                        strict.duplicate(&path);
                    }
                    value.tell_duplicates(&path, strict);
                }
            }
            _ => {}
        }
    }
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Node::Null,
            Value::Bool(value) => Node::Bool(*value),
            Value::Number(number) => Node::Number(number.to_string()),
            Value::String(text) => Node::String(text.clone()),
            Value::Array(list) => Node::Array(list.iter().map(Node::from).collect()),
            Value::Object(fields) => Node::Object(
                fields.iter().map(|(name, value)| (name.clone(), Node::from(value))).collect(),
            ),
        }
    }
}

/// Whether a name occurs twice. Few names are fastest compared with each other.
fn repeats(fields: &[(String, Node)]) -> bool {
    const FEW: usize = 8;
    if fields.len() <= FEW {
        let mut rest = fields;
        while let [(name, _), others @ ..] = rest {
            if others.iter().any(|(other, _)| other == name) {
                return true;
            }
            rest = others;
        }
        return false;
    }
    let mut seen = BTreeSet::new();
    !fields.iter().all(|(name, _)| seen.insert(name))
}

/// The path of a field below a path.
pub(super) fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// Complaints of a strict decoding: each once, and no more than the first hundred.
#[derive(Debug, Default)]
pub(super) struct Strict {
    pub(super) messages: Vec<String>,
    seen: BTreeSet<String>,
}

impl Strict {
    const LIMIT: usize = 100;

    pub(super) fn duplicate(&mut self, path: &str) {
        self.add(format!("duplicate field {}", quote(path)));
    }

    pub(super) fn unknown(&mut self, path: &str) {
        self.add(format!("unknown field {}", quote(path)));
    }

    fn add(&mut self, message: String) {
        if self.messages.len() < Self::LIMIT && self.seen.insert(message.clone()) {
            self.messages.push(message);
        }
    }
}

/// A string quoted as Go's `strconv.Quote` does.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            ' '..='~' => quoted.push(letter),
            '\0'..='\x1f' | '\x7f' => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(letter));
            }
            _ if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// A number without a type: an integer where it fits, as the Kubernetes decoder keeps them. Whole
/// floats are integers too, because Go writes them so.
fn number(text: &str) -> Value {
    match text.parse::<i64>() {
        Ok(integer) => integer.into(),
        Err(_) => text.parse::<f64>().map_or(Value::Null, go_float),
    }
}

/// Text that is not JSON; the message is Go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SyntaxError(String);

impl SyntaxError {
    fn at(byte: u8, context: &str) -> Self {
        let shown = match byte {
            b'\'' => "'\\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            _ => {
                let quoted = quote(&char::from(byte).to_string());
                format!("'{}'", quoted.get(1..quoted.len() - 1).unwrap_or_default())
            }
        };
        Self(format!("invalid character {shown} {context}"))
    }

    fn end() -> Self {
        Self("unexpected end of JSON input".to_owned())
    }
}

/// Reads one JSON value.
pub fn parse(body: &[u8]) -> Result<Node, SyntaxError> {
    let mut reader = Reader { body, at: 0 };
    let node = reader.value(0)?;
    match reader.next_token() {
        None => Ok(node),
        Some(byte) => Err(SyntaxError::at(byte, "after top-level value")),
    }
}

struct Reader<'a> {
    body: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// Skips white space and takes the byte after it.
    fn next_token(&mut self) -> Option<u8> {
        loop {
            let byte = self.next()?;
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = *self.body.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        let byte = self.next_token().ok_or_else(SyntaxError::end)?;
        self.value_from(byte, depth)
    }

    fn value_from(&mut self, byte: u8, depth: usize) -> Result<Node, SyntaxError> {
        if matches!(byte, b'{' | b'[') && depth >= MAX_DEPTH {
            return Err(SyntaxError::at(byte, "exceeded max depth"));
        }
        match byte {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Node::String),
            b't' => self.word("true", Node::Bool(true)),
            b'f' => self.word("false", Node::Bool(false)),
            b'n' => self.word("null", Node::Null),
            b'-' | b'0'..=b'9' => self.number(byte),
            other => Err(SyntaxError::at(other, "looking for beginning of value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        let mut fields = Vec::new();
        loop {
            match self.next_token().ok_or_else(SyntaxError::end)? {
                b'}' if fields.is_empty() => break,
                b'"' => {}
                other => {
                    return Err(SyntaxError::at(
                        other,
                        "looking for beginning of object key string",
                    ));
                }
            }
            let name = self.string()?;
            match self.next_token().ok_or_else(SyntaxError::end)? {
                b':' => {}
                other => return Err(SyntaxError::at(other, "after object key")),
            }
            fields.push((name, self.value(depth + 1)?));
            match self.next_token().ok_or_else(SyntaxError::end)? {
                b',' => {}
                b'}' => break,
                other => return Err(SyntaxError::at(other, "after object key:value pair")),
            }
        }
        Ok(Node::Object(fields))
    }

    fn array(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        let mut list = Vec::new();
        loop {
            match self.next_token().ok_or_else(SyntaxError::end)? {
                b']' if list.is_empty() => break,
                byte => list.push(self.value_from(byte, depth + 1)?),
            }
            match self.next_token().ok_or_else(SyntaxError::end)? {
                b',' => {}
                b']' => break,
                other => return Err(SyntaxError::at(other, "after array element")),
            }
        }
        Ok(Node::Array(list))
    }

    fn word(&mut self, word: &str, node: Node) -> Result<Node, SyntaxError> {
        for expected in word.bytes().skip(1) {
            match self.next() {
                Some(byte) if byte == expected => {}
                Some(byte) => {
                    let expected = char::from(expected);
                    let context = format!("in literal {word} (expecting '{expected}')");
                    return Err(SyntaxError::at(byte, &context));
                }
                None => return Err(SyntaxError::end()),
            }
        }
        Ok(node)
    }

    fn number(&mut self, first: u8) -> Result<Node, SyntaxError> {
        let start = self.at - 1;
        let leading = if first == b'-' {
            match self.next().ok_or_else(SyntaxError::end)? {
                digit @ b'0'..=b'9' => digit,
                other => return Err(SyntaxError::at(other, "in numeric literal")),
            }
        } else {
            first
        };
        if leading != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        let text = self.body.get(start..self.at).unwrap_or_default();
        Ok(Node::Number(String::from_utf8_lossy(text).into_owned()))
    }

    fn digit(&mut self, context: &str) -> Result<(), SyntaxError> {
        match self.next() {
            Some(b'0'..=b'9') => Ok(()),
            Some(other) => Err(SyntaxError::at(other, context)),
            None => Err(SyntaxError::end()),
        }
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    /// The rest of a string after its opening quote.
    fn string(&mut self) -> Result<String, SyntaxError> {
        let mut bytes = Vec::new();
        loop {
            match self.next().ok_or_else(SyntaxError::end)? {
                b'"' => break,
                b'\\' => self.escape(&mut bytes)?,
                byte @ ..0x20 => return Err(SyntaxError::at(byte, "in string literal")),
                byte => bytes.push(byte),
            }
        }
        // Go replaces what is not UTF-8.
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let byte = self.next().ok_or_else(SyntaxError::end)?;
        bytes.push(match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode(bytes),
            other => return Err(SyntaxError::at(other, "in string escape code")),
        });
        Ok(())
    }

    fn unicode(&mut self, bytes: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let first = self.hex()?;
        let mut letter = char::from_u32(first);
        if (0xd800..0xdc00).contains(&first) && self.body.get(self.at..self.at + 2) == Some(b"\\u")
        {
            let here = self.at;
            self.at += 2;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                letter = char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            } else {
                // Not a pair: the second escape stands for itself.
                self.at = here;
            }
        }
        let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
        bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn hex(&mut self) -> Result<u32, SyntaxError> {
        let mut value = 0;
        for _ in 0..4 {
            let byte = self.next().ok_or_else(SyntaxError::end)?;
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(SyntaxError::at(byte, "in \\u hexadecimal character escape"));
            };
            value = value * 16 + digit;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn syntax_errors_read_as_go_writes_them() {
        for (text, expected) in [
            ("", "unexpected end of JSON input"),
            ("  ", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("{\"a\":1", "unexpected end of JSON input"),
            ("[1,", "unexpected end of JSON input"),
            ("\"a", "unexpected end of JSON input"),
            ("-", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{x", "invalid character 'x' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"", "invalid character '\"' after object key:value pair"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{}x", "invalid character 'x' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("nil", "invalid character 'i' in literal null (expecting 'u')"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("'a'", "invalid character '\\'' looking for beginning of value"),
            ("\u{e9}", "invalid character 'Ã' looking for beginning of value"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), expected, "{text}");
        }
        let deep = "[".repeat(MAX_DEPTH + 1);
        assert_eq!(
            parse(deep.as_bytes()).unwrap_err().to_string(),
            "invalid character '[' exceeded max depth"
        );
    }

    #[test]
    fn order_duplicates_and_digits_are_kept() {
        let node =
            parse(br#"{"b":1.0,"a":[{"x":1,"x":2}],"b":1e3,"c":12345678901234567890}"#).unwrap();
        assert_eq!(node.duplicates(), ["duplicate field \"a[0].x\"", "duplicate field \"b\""]);
        assert_eq!(
            node.to_value(),
            json!({"a": [{"x": 2}], "b": 1000, "c": 12_345_678_901_234_567_890_f64})
        );
        assert_eq!(node.get("b"), Some(&Node::Number("1e3".into())));
    }

    #[test]
    fn strings_are_read_as_go_reads_them() {
        for (text, expected) in [
            (&br#""a\u00e9\n""#[..], "a\u{e9}\n"),
            (br#""\ud83d\ude00""#, "\u{1f600}"),
            (br#""\ud83dx""#, "\u{fffd}x"),
            (br#""\ud83d\u0041""#, "\u{fffd}A"),
            (b"\"\xff\"", "\u{fffd}"),
        ] {
            assert_eq!(parse(text), Ok(Node::String(expected.to_owned())));
        }
    }

    #[test]
    fn quoting_is_go_quoting() {
        assert_eq!(quote("a\"\\\n\x01\u{85}\u{e9}"), "\"a\\\"\\\\\\n\\x01\\u0085\u{e9}\"");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_serde_writes_is_read_back(value in any_json()) {
            let text = value.to_string();
            prop_assert_eq!(parse(text.as_bytes()).unwrap().to_value(), value.clone());
            prop_assert_eq!(Node::from(&value).to_value(), value.clone());
            prop_assert_eq!(Node::from(&value).into_value(), value);
        }

        #[test]
        fn anything_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let accepted = parse(&bytes).is_ok();
            // serde is stricter about UTF-8 and numbers that overflow, never laxer.
            if serde_json::from_slice::<Value>(&bytes).is_ok() {
                prop_assert!(accepted);
            }
        }
    }
}
