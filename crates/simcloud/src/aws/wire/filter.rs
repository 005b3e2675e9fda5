//! Filters of Describe calls: any of the values, all of the filters, with wildcards.

use std::borrow::Cow;

use super::form::Scope;
use crate::aws::model::{ApiError, Outcome, tags::Tags};

/// What can be filtered.
pub(crate) trait Filtered {
    /// The names that EC2 knows for this resource, beside `tag:…` and `tag-key`.
    const NAMES: &'static [&'static str];

    /// The values it has under one of the names.
    fn values(&self, name: &str) -> Vec<Cow<'_, str>>;

    /// Its tags; `None` if it cannot have any.
    fn tags(&self) -> Option<&Tags>;
}

/// The filters of a call.
#[derive(Debug)]
pub(crate) struct Filters(Vec<(String, Vec<String>)>);

/// Most values in all filters of a call.
const MOST_VALUES: usize = 200;

impl Filters {
    /// Reads `Filter.N`, and fails on names that this resource does not have.
    pub(crate) fn read<T: Filtered>(scope: &Scope<'_>) -> Outcome<Self> {
        let mut filters = Vec::new();
        for entry in scope.entries("Filter") {
            let name = entry.required("Name")?;
            let tag = name.starts_with("tag:") || name == "tag-key";
            if !tag && !T::NAMES.contains(&name.as_str()) {
                return Err(ApiError::invalid(format!("The filter '{name}' is invalid")));
            }
            let values = entry.list("Value");
            if values.is_empty() {
                return Err(ApiError::invalid(format!(
                    "The filter '{name}' must have at least one value"
                )));
            }
            filters.push((name, values));
        }
        if filters.iter().map(|(_, values)| values.len()).sum::<usize>() > MOST_VALUES {
            return Err(ApiError::client(
                "FilterLimitExceeded",
                format!(
                    "The maximum number of filter values specified on a single call is \
                     {MOST_VALUES}"
                ),
            ));
        }
        Ok(Self(filters))
    }

    /// Whether every filter lets the resource through.
    pub(crate) fn admit<T: Filtered>(&self, resource: &T) -> bool {
        self.0.iter().all(|(name, patterns)| {
            let any = |value: &str| patterns.iter().any(|pattern| matches(pattern, value));
            if name == "tag-key" {
                return resource.tags().is_some_and(|tags| tags.keys().any(|key| any(key)));
            }
            if let Some(key) = name.strip_prefix("tag:") {
                return resource.tags().and_then(|tags| tags.get(key)).is_some_and(|v| any(v));
            }
            resource.values(name).iter().any(|value| any(value))
        })
    }
}

/// `*` is any text, `?` any character, `\` takes the next one as it is.
fn matches(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?', '\\']) {
        return pattern == text;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    // Where the last star is, and how much text it has swallowed: on a mismatch it takes one
    // more, so the time is at worst the product of the lengths.
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        let (literal, step) = match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some('?') => (None, 1),
            Some('\\') if p + 1 < pattern.len() => (Some(pattern[p + 1]), 2),
            Some(c) => (Some(*c), 1),
            None => (Some('\0'), 0),
        };
        let hit = step > 0 && literal.is_none_or(|c| c == text[t]);
        if hit {
            p += step;
            t += 1;
        } else if let Some((after, swallowed)) = star {
            star = Some((after, swallowed + 1));
            p = after;
            t = swallowed + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::super::form::Form;
    use super::*;

    struct Thing(Tags);

    impl Filtered for Thing {
        const NAMES: &'static [&'static str] = &["state", "zone"];

        fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
            if name == "state" { vec!["running".into()] } else { Vec::new() }
        }

        fn tags(&self) -> Option<&Tags> {
            Some(&self.0)
        }
    }

    fn admits(form: &str) -> bool {
        let thing = Thing([("Name".to_owned(), "a-b".to_owned())].into());
        let form = Form::parse(form).unwrap();
        Filters::read::<Thing>(&form.root()).unwrap().admit(&thing)
    }

    #[test]
    fn any_value_of_all_filters() {
        assert!(admits(""));
        assert!(admits("Filter.1.Name=state&Filter.1.Value.1=stopped&Filter.1.Value.2=running"));
        assert!(admits(
            "Filter.1.Name=tag:Name&Filter.1.Value.1=a*&Filter.2.Name=tag-key&Filter.2.Value.1=N?me"
        ));
        assert!(!admits(
            "Filter.1.Name=tag:Name&Filter.1.Value.1=a*&Filter.2.Name=state&Filter.2.Value.1=x"
        ));
        assert!(!admits("Filter.1.Name=tag:name&Filter.1.Value.1=a-b"));
        assert!(!admits("Filter.1.Name=zone&Filter.1.Value.1=*"));
    }

    #[test]
    fn what_is_refused() {
        let code = |text: &str| {
            let form = Form::parse(text).unwrap();
            Filters::read::<Thing>(&form.root()).unwrap_err().code
        };
        assert_eq!(code("Filter.1.Name=colour&Filter.1.Value.1=red"), "InvalidParameterValue");
        assert_eq!(code("Filter.1.Name=state"), "InvalidParameterValue");
        assert_eq!(code("Filter.1.Value.1=state"), "MissingParameter");
        let many: Vec<_> = (0..201).map(|i| format!("&Filter.1.Value.{i}=x")).collect();
        let many = many.concat();
        assert_eq!(code(&format!("Filter.1.Name=state{many}")), "FilterLimitExceeded");
    }

    #[test]
    fn wildcards() {
        for (pattern, text, expected) in [
            ("a*c", "abbc", true),
            ("a*c", "abb", false),
            ("*", "", true),
            ("?", "", false),
            ("??", "é!", true),
            ("*b*b*", "abab", true),
            ("a\\*c", "a*c", true),
            ("a\\*c", "abc", false),
            ("a\\", "a\\", true),
            ("*ab", "aab", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
