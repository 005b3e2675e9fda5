//! The columns in which kubectl prints custom objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::gotext;
use crate::jsonpath::JsonPath;

const NAME_DOC: &str = "Name must be unique within a namespace. Is required when creating \
     resources, although some resources may allow a client to request the generation of an \
     appropriate name automatically. Name is primarily intended for creation idempotence and \
     configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/\
     overview/working-with-objects/names#names";
const AGE_DOC: &str = "CreationTimestamp is a timestamp representing the server time when this \
     object was created. It is not guaranteed to be set in happens-before order across separate \
     operations. Clients may not set this value. It is represented in RFC3339 form and is in \
     UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/\
     community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The columns of one version of a custom kind.
#[derive(Clone, Debug)]
pub struct Columns {
    definitions: Vec<Value>,
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    path: JsonPath,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    Date,
}

impl Columns {
    /// The columns for the `additionalPrinterColumns` of a version: those after one whose path
    /// is malformed are left out, and without any there is the age.
    pub fn new(printer_columns: &[Value]) -> Self {
        let mut columns = Self {
            definitions: vec![json!({
                "name": "Name", "type": "string", "format": "name", "description": NAME_DOC,
                "priority": 0,
            })],
            columns: Vec::new(),
        };
        if printer_columns.is_empty() {
            let age = json!({
                "name": "Age", "type": "date", "description": AGE_DOC,
                "jsonPath": ".metadata.creationTimestamp",
            });
            columns.add(&age);
        }
        for column in printer_columns {
            if !columns.add(column) {
                break;
            }
        }
        columns
    }

    fn add(&mut self, column: &Value) -> bool {
        let text = |name: &str| column.get(name).and_then(Value::as_str).unwrap_or_default();
        let Ok(path) = JsonPath::parse(text("jsonPath")) else { return false };
        let description = match text("description") {
            "" => format!(
                "Custom resource definition column (in JSONPath format): {}",
                text("jsonPath")
            ),
            description => description.to_owned(),
        };
        self.definitions.push(json!({
            "name": text("name"),
            "type": text("type"),
            "format": text("format"),
            "description": description,
            "priority": column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
        }));
        let kind = match text("type") {
            "integer" => Kind::Integer,
            "number" => Kind::Number,
            "boolean" => Kind::Boolean,
            "date" => Kind::Date,
            _ => Kind::Text,
        };
        self.columns.push(Column { path, kind });
        true
    }

    /// The `columnDefinitions` of a table.
    pub fn definitions(&self) -> &[Value] {
        &self.definitions
    }

    /// The `cells` of the row of an object; ages are counted up to `now`.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let mut cells = vec![Value::from(name)];
        cells.extend(self.columns.iter().map(|column| {
            column.path.first(object).map_or(Value::Null, |value| cell(&value, column.kind, now))
        }));
        cells
    }
}

fn cell(value: &Value, kind: Kind, now: Timestamp) -> Value {
    match (kind, value) {
        (Kind::Text, _) => Value::from(printed(value)),
        (Kind::Integer, Value::Number(number)) => {
            #[expect(clippy::cast_possible_truncation, reason = "fractions are cut off")]
            let truncated = || number.as_f64().unwrap_or_default() as i64;
            Value::from(number.as_i64().unwrap_or_else(truncated))
        }
        // A whole float prints without a fraction, as all numbers do.
        (Kind::Number, Value::Number(_)) | (Kind::Boolean, Value::Bool(_)) => value.clone(),
        (Kind::Date, Value::String(text)) => Value::from(age(text, now)),
        _ => Value::Null,
    }
}

fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Array(_) | Value::Object(_) => gotext::json(value),
        _ => gotext::plain(value),
    }
}

fn age(text: &str, now: Timestamp) -> String {
    if matches!(text, "" | "null") {
        return "<unknown>".to_owned();
    }
    match text.parse::<Timestamp>() {
        Ok(time) => human_duration(now.as_second() - time.as_second()),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// A duration in seconds as tables show it: two units at most, the larger the coarser.
pub fn human_duration(seconds: i64) -> String {
    let with = |large: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{small}{small_unit}")
        }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => with(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => with(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => with(days, "d", hours % 24, "h"),
        _ if days < 365 * 2 => format!("{days}d"),
        _ if days < 365 * 8 => with(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_kubectl() {
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human_duration(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn cells_have_the_types_of_their_columns() {
        let column = |kind: &str, path: &str| json!({"name": kind, "type": kind, "jsonPath": path});
        let columns = Columns::new(&[
            column("string", ".s"),
            column("string", ".n"),
            column("string", ".f"),
            column("string", ".o"),
            column("string", ".null"),
            column("string", ".missing"),
            column("integer", ".n"),
            column("integer", ".f"),
            column("integer", ".s"),
            column("number", ".f"),
            column("boolean", ".b"),
            column("date", ".t"),
            column("date", ".s"),
            column("string", ".list[?(@.k==\"b\")].v"),
            column("string", ".list[9].v"),
        ]);
        let object = json!({"metadata": {"name": "x"}, "s": "text", "n": 3, "f": 1_000_000.5,
            "o": {"a": [1, "<"]}, "null": null, "b": true, "t": "2026-01-01T00:00:00Z",
            "list": [{"k": "a", "v": "1"}, {"k": "b", "v": "2"}]});
        let now: Timestamp = "2026-01-01T00:03:00Z".parse().unwrap();
        assert_eq!(
            Value::from(columns.cells(&object, now)),
            json!([
                "x",
                "text",
                "3",
                "1.0000005e+06",
                "{\"a\":[1,\"\\u003c\"]}",
                "<no value>",
                null,
                3,
                1_000_000,
                null,
                1_000_000.5,
                true,
                "3m",
                "<invalid>",
                "2",
                null
            ])
        );
    }

    #[test]
    fn tables_are_as_those_of_the_real_server() {
        let recorded: Value = serde_json::from_str(include_str!("../testdata/table.json")).unwrap();
        let columns = Columns::new(recorded["columns"].as_array().unwrap());
        assert_eq!(columns.definitions(), recorded["definitions"].as_array().unwrap());
        let now: Timestamp = "2026-11-15T09:25:00Z".parse().unwrap();
        assert_eq!(Value::from(columns.cells(&recorded["object"], now)), recorded["cells"]);
    }

    #[test]
    fn without_columns_there_is_the_age() {
        let columns = Columns::new(&[]);
        let names: Vec<&Value> = columns.definitions().iter().map(|d| &d["name"]).collect();
        assert_eq!(names, ["Name", "Age"]);
        let broken = Columns::new(&[json!({"name": "a", "type": "string", "jsonPath": ".a["})]);
        assert_eq!(broken.definitions().len(), 1);
    }
}
