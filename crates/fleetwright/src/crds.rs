//! `fleetwright crds`.

use anyhow::Context as _;
use serde_json::Value;

/// Prints the definitions as YAML documents.
pub(crate) fn run() -> anyhow::Result<()> {
    crate::print_line(yaml(&documents()?)?.trim_end())
}

/// Objects as YAML documents.
pub(crate) fn yaml(objects: &[Value]) -> anyhow::Result<String> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object).context("cannot write an object as YAML")?);
    }
    Ok(text)
}

/// The definitions as users read them.
pub(crate) fn documents() -> anyhow::Result<Vec<Value>> {
    fleetwright_api::crds()
        .iter()
        .map(|crd| Ok(whole(serde_json::to_value(crd).context("cannot write a definition")?)))
        .collect()
}

/// The type of the API has floating-point limits; `7` reads better than `7.0`.
#[expect(clippy::cast_possible_truncation, reason = "limits are small whole numbers")]
fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(real) if number.is_f64() && real.fract() == 0.0 => (real as i64).into(),
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(whole).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, whole(field))).collect()
        }
        other => other,
    }
}
