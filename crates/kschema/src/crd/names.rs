//! The names of a kind.

use super::spec::Names;
use crate::field::{FieldError, Path};
use crate::names::dns_1035_label;

pub(super) fn validate(names: &Names, path: &Path, errors: &mut Vec<FieldError>) {
    let mut label = |value: &str, place: &Path| {
        let reasons = dns_1035_label(value);
        if !reasons.is_empty() {
            errors.push(FieldError::invalid(place, value, reasons.join(",")));
        }
    };
    for (value, name) in [(&names.plural, "plural"), (&names.singular, "singular")] {
        if !value.is_empty() {
            label(value, &path.child(name));
        }
    }
    for (value, name) in [(&names.kind, "kind"), (&names.list_kind, "listKind")] {
        let reasons = dns_1035_label(&value.to_lowercase());
        if !value.is_empty() && !reasons.is_empty() {
            let detail =
                format!("may have mixed case, but should otherwise match: {}", reasons.join(","));
            errors.push(FieldError::invalid(&path.child(name), value.as_str(), detail));
        }
    }
    labels(&names.short, &path.child("shortNames"), errors);
    if !names.kind.is_empty() && names.kind == names.list_kind {
        errors.push(FieldError::invalid(
            &path.child("listKind"),
            names.list_kind.as_str(),
            "kind and listKind may not be the same",
        ));
    }
    labels(&names.categories, &path.child("categories"), errors);
}

fn labels(values: &[String], path: &Path, errors: &mut Vec<FieldError>) {
    for (i, value) in values.iter().enumerate() {
        let reasons = dns_1035_label(value);
        if !reasons.is_empty() {
            errors.push(FieldError::invalid(&path.index(i), value.as_str(), reasons.join(",")));
        }
    }
}
