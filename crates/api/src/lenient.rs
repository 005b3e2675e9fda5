//! Reading values as Go's decoder and a schema without limits let them through.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

/// `null` reads as nothing, for fields that are not optional: so does Go.
pub(crate) fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A number of 32 bits; one that does not fit is clamped, so that one object with a huge number
/// does not make a whole list unreadable.
pub(crate) fn clamped<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    Ok(Option::<Number>::deserialize(deserializer)?.map(|number| clamp(&number)))
}

/// The same for a number or a text.
pub(crate) fn clamped_or_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<IntOrString>, D::Error> {
    Ok(match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => None,
        Some(Value::Number(number)) => Some(IntOrString::Int(clamp(&number))),
        Some(Value::String(text)) => Some(IntOrString::String(text)),
        Some(other) => Some(IntOrString::String(other.to_string())),
    })
}

/// A text, or a number that is read as the text that it was written with: a quantity may be either.
pub(crate) fn text_or_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Number(Number),
    }
    Ok(Option::<Written>::deserialize(deserializer)?.map(|written| match written {
        Written::Text(text) => text,
        Written::Number(number) => number.to_string(),
    }))
}

fn clamp(number: &Number) -> i32 {
    let limit = |negative: bool| if negative { i32::MIN } else { i32::MAX };
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => i32::try_from(whole).unwrap_or(limit(whole < 0)),
        (None, Some(real)) => limit(real < 0.0),
        (None, None) => i32::MAX,
    }
}
