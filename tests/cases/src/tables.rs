//! Table files: what in them is a row.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::row::Row;

/// One file of tables.
#[derive(Debug)]
pub struct TableFile {
    /// The file's name, with its ending.
    pub name: String,
    document: Value,
}

/// The tables that a file has by its shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The keys that lead to it, joined by dots: `marketOptions.cases`.
    pub path: String,
    /// How many rows it has.
    pub rows: usize,
}

impl TableFile {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        let document: Value =
            serde_json::from_str(&text).with_context(|| format!("{name} is not JSON"))?;
        if !document.is_object() {
            bail!("{name} is not an object whose keys name tables");
        }
        Ok(Self { name, document })
    }

    /// The whole document, for the context that rows refer to.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Every list of objects, in the order of the file's sorted keys. Lists inside rows belong to
    /// their row.
    pub fn tables(&self) -> Vec<Table> {
        let mut found = Vec::new();
        find(&self.document, "", &mut found);
        found
    }

    /// The rows at a path: the items of a list (objects or plain values), or a single object.
    pub fn rows<'a>(&'a self, path: &'a str) -> Result<Vec<Row<'a>>> {
        let mut value = &self.document;
        for key in path.split('.') {
            value = value
                .get(key)
                .with_context(|| format!("{} has no {path:?}: no key {key:?}", self.name))?;
        }
        Ok(match value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, value)| Row::new(self, path, index, value))
                .collect(),
            single => vec![Row::new(self, path, 0, single)],
        })
    }
}

fn find(value: &Value, path: &str, found: &mut Vec<Table>) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                let child_path =
                    if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                find(child, &child_path, found);
            }
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_object) => {
            found.push(Table { path: path.to_owned(), rows: items.len() });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(document: Value) -> TableFile {
        TableFile { name: "x.json".to_owned(), document }
    }

    #[test]
    fn tables_are_lists_of_objects_at_any_depth() {
        let file = file(json!({
            "source": ["a", "b"],
            "note": "text",
            "cases": [{"name": "a", "inner": [{"not": "a table"}]}, {"name": "b"}],
            "webhook": {"source": "x", "cases": [{"name": "c"}], "deep": {"rows": [{}]}},
            "nothing": [],
        }));
        let tables = file.tables();
        let paths: Vec<(&str, usize)> =
            tables.iter().map(|table| (table.path.as_str(), table.rows)).collect();
        assert_eq!(paths, [("cases", 2), ("webhook.cases", 1), ("webhook.deep.rows", 1)]);
    }

    #[test]
    fn rows_may_be_plain_values_or_one_object() {
        let file = file(json!({"accept": {"timeout": ["1s", "1h"]}, "adopt": {"expect": 1}}));
        assert_eq!(file.rows("accept.timeout").unwrap().len(), 2);
        assert_eq!(file.rows("adopt").unwrap().len(), 1);
        let error = file.rows("accept.absent").unwrap_err().to_string();
        assert!(error.contains("absent"), "{error}");
    }

    #[test]
    fn a_file_that_is_no_table_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.json");
        fs::write(&path, "[]").unwrap();
        assert!(TableFile::load(&path).is_err());
        fs::write(&path, "{").unwrap();
        let error = TableFile::load(&path).unwrap_err().to_string();
        assert!(error.contains("bad.json"), "{error}");
    }
}
