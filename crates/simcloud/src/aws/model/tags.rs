//! Tags and their rules.

use std::collections::BTreeMap;

use super::error::{ApiError, Outcome};

/// The tags of a resource.
pub type Tags = BTreeMap<String, String>;

/// Most tags on one resource.
const MOST: usize = 50;
const LONGEST_KEY: usize = 128;
const LONGEST_VALUE: usize = 256;

/// Tags from a request, checked one by one.
pub fn checked(pairs: Vec<(String, String)>) -> Outcome<Tags> {
    let mut tags = Tags::new();
    for (key, value) in pairs {
        check(&key, &value)?;
        if tags.contains_key(&key) {
            return Err(ApiError::invalid(format!("Duplicate tag key '{key}' specified.")));
        }
        tags.insert(key, value);
    }
    within_limit(&tags)?;
    Ok(tags)
}

/// The tags that a resource has after these are added.
pub fn added(old: &Tags, new: &Tags) -> Outcome<Tags> {
    let mut tags = old.clone();
    tags.extend(new.clone());
    within_limit(&tags)?;
    Ok(tags)
}

/// The tags left after a removal: by key, and by value too where one is given. An empty list
/// removes every tag.
pub fn removed(old: &Tags, gone: &[(String, Option<String>)]) -> Tags {
    if gone.is_empty() {
        return Tags::new();
    }
    let goes = |key: &String, value: &String| {
        gone.iter().any(|(k, v)| k == key && v.as_ref().is_none_or(|v| v == value))
    };
    old.iter().filter(|(k, v)| !goes(k, v)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn check(key: &str, value: &str) -> Outcome<()> {
    if key.is_empty() {
        return Err(ApiError::invalid("Tag key cannot be null or empty."));
    }
    if key.chars().count() > LONGEST_KEY {
        return Err(ApiError::invalid(format!(
            "Tag key exceeds the maximum length of {LONGEST_KEY} characters"
        )));
    }
    if value.chars().count() > LONGEST_VALUE {
        return Err(ApiError::invalid(format!(
            "Tag value exceeds the maximum length of {LONGEST_VALUE} characters"
        )));
    }
    if key.to_ascii_lowercase().starts_with("aws:") {
        return Err(ApiError::invalid(
            "Tag keys starting with 'aws:' are reserved for internal use",
        ));
    }
    Ok(())
}

fn within_limit(tags: &Tags) -> Outcome<()> {
    if tags.len() > MOST {
        return Err(ApiError::client(
            "TagLimitExceeded",
            "The maximum number of Tags for a resource has been reached.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn the_rules() {
        let long = "k".repeat(129);
        for (pairs, code) in [
            (vec![("", "v")], "InvalidParameterValue"),
            (vec![("aws:x", "v")], "InvalidParameterValue"),
            (vec![("AWS:x", "v")], "InvalidParameterValue"),
            (vec![(long.as_str(), "v")], "InvalidParameterValue"),
            (vec![("a", "1"), ("a", "2")], "InvalidParameterValue"),
        ] {
            assert_eq!(checked(tags(&pairs)).unwrap_err().code, code, "{pairs:?}");
        }
        let fifty: Vec<_> = (0..50).map(|i| (format!("k{i}"), String::new())).collect();
        let full = checked(fifty).unwrap();
        let one = checked(tags(&[("more", "")])).unwrap();
        assert_eq!(added(&full, &one).unwrap_err().code, "TagLimitExceeded");
        let again = checked(tags(&[("k0", "new")])).unwrap();
        assert_eq!(added(&full, &again).unwrap()["k0"], "new");
    }

    #[test]
    fn removal_minds_the_value_where_one_is_given() {
        let old = checked(tags(&[("a", "1"), ("b", "2")])).unwrap();
        let gone = |k: &str, v: Option<&str>| vec![(k.to_owned(), v.map(str::to_owned))];
        assert_eq!(removed(&old, &gone("a", Some("2"))).len(), 2);
        assert_eq!(removed(&old, &gone("a", Some("1"))).len(), 1);
        assert_eq!(removed(&old, &gone("a", None)).len(), 1);
        assert!(removed(&old, &[]).is_empty());
    }
}
