//! One row, and what we want of it.

use std::fmt;

use serde_json::Value;

use crate::tables::TableFile;

/// Keys that say what we do where upstream does something else. The first that a row has wins
/// over its plain expectation.
pub const WINNING_KEYS: [&str; 6] =
    ["upstream_bug", "improved", "better", "suggest", "recommended", "expect_by_code"];

/// Keys of a plain expectation. Other `upstream_*` keys are history and never read here.
pub const PLAIN_KEYS: [&str; 2] = ["expect", "expected"];

/// One row of a table.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    file: &'a TableFile,
    table: &'a str,
    index: usize,
    value: &'a Value,
}

/// What a row wants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expectation<'a> {
    /// The key that won.
    pub key: &'a str,
    /// Its value. Under a winning key it may be a sentence, for instance about a fault of
    /// upstream: the outcome is then `plain`, or what the sentence asks for.
    pub value: &'a Value,
    /// The plain expectation, whether it won or not.
    pub plain: Option<&'a Value>,
}

impl<'a> Row<'a> {
    pub(crate) fn new(file: &'a TableFile, table: &'a str, index: usize, value: &'a Value) -> Self {
        Self { file, table, index, value }
    }

    /// The row itself.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// A key of the row; null when it is absent.
    pub fn get(&self, key: &str) -> &'a Value {
        self.value.get(key).unwrap_or(&Value::Null)
    }

    /// The file's document, for what rows refer to.
    pub fn context(&self) -> &'a Value {
        self.file.document()
    }

    /// The table's path in the file.
    pub fn table(&self) -> &'a str {
        self.table
    }

    /// Where the row comes from: `seed`, `upstream-test`, ...; rows of `seed` and of an older
    /// release run under the matching switch.
    pub fn origin(&self) -> Option<&'a str> {
        self.value.get("origin").and_then(Value::as_str)
    }

    /// What the row wants, the winning keys first, also inside the expectation itself. Nothing
    /// when it has no such key: tables may name their outcome in other words.
    pub fn expectation(&self) -> Option<Expectation<'a>> {
        expectation(self.value)
    }
}

fn expectation(value: &Value) -> Option<Expectation<'_>> {
    let first = |keys: &[&'static str]| {
        keys.iter().find_map(|key| value.get(*key).map(|found| (*key, found)))
    };
    let plain = first(&PLAIN_KEYS);
    let (key, wanted) = first(&WINNING_KEYS).or(plain)?;
    let found = Expectation { key, value: wanted, plain: plain.map(|(_, value)| value) };
    // `"expected": {"error": true, "improved": {"error": false}}` wins in its own place.
    match expectation(wanted) {
        Some(inner) if WINNING_KEYS.contains(&inner.key) => {
            Some(Expectation { plain: found.plain, ..inner })
        }
        _ => Some(found),
    }
}

/// `table[3] (its name)`.
impl fmt::Display for Row<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}[{}]", self.table, self.index)?;
        let name = ["name", "id"].iter().find_map(|key| self.value.get(*key)?.as_str());
        name.map_or(Ok(()), |name| write!(formatter, " ({name})"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted(row: &Value) -> Option<(String, Value)> {
        expectation(row).map(|found| (found.key.to_owned(), found.value.clone()))
    }

    #[test]
    fn every_winning_key_wins_over_both_plain_keys() {
        for winning in WINNING_KEYS {
            for plain in PLAIN_KEYS {
                let row = json!({plain: "theirs", winning: "ours", "upstream_outcome": "history"});
                assert_eq!(wanted(&row), Some((winning.to_owned(), json!("ours"))));
                assert_eq!(expectation(&row).unwrap().plain, Some(&json!("theirs")));
            }
        }
    }

    #[test]
    fn the_order_of_the_winning_keys_counts() {
        let row = json!({"expect_by_code": 1, "recommended": 2, "suggest": 3, "better": 4,
            "improved": 5, "upstream_bug": 6});
        assert_eq!(wanted(&row), Some(("upstream_bug".to_owned(), json!(6))));
        let row = json!({"expect_by_code": 1, "recommended": 2});
        assert_eq!(wanted(&row), Some(("recommended".to_owned(), json!(2))));
    }

    #[test]
    fn a_plain_row() {
        assert_eq!(wanted(&json!({"expect": null})), Some(("expect".to_owned(), Value::Null)));
        assert_eq!(wanted(&json!({"expected": 1})), Some(("expected".to_owned(), json!(1))));
        assert_eq!(wanted(&json!({"upstream_outcome": 1, "expect_error": 2})), None);
        assert_eq!(wanted(&json!("a plain value")), None);
    }

    #[test]
    fn a_winning_key_inside_the_expectation() {
        let row = json!({"expected": {"error": true, "improved": {"error": false}}});
        assert_eq!(wanted(&row), Some(("improved".to_owned(), json!({"error": false}))));
        // A plain key inside is part of the expected object.
        let row = json!({"expect": {"expect": 1}});
        assert_eq!(wanted(&row), Some(("expect".to_owned(), json!({"expect": 1}))));
    }
}
