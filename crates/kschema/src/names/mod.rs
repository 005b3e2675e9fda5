//! Rules for names, labels, annotations and the rest of an object's metadata.
//!
//! Validators of texts return the list of reasons why a text is not valid; an empty list means
//! that it is. The reasons are those that the Kubernetes API gives.

mod dns;
mod labels;
mod meta;
mod owners;
mod texts;

pub use dns::{
    dns_1035_label, dns_1123_label, dns_1123_subdomain, dns_1123_subdomain_with_underscore,
    wildcard_dns_1123_subdomain,
};
pub use labels::{
    label_value, prefixed_label_key, qualified_name, validate_label_selector, validate_labels,
};
pub use meta::{
    FOREGROUND, ORPHAN, finalizer_warnings, validate_annotations, validate_field_manager,
    validate_finalizers, validate_object_meta, validate_object_meta_update,
};
pub use owners::validate_owner_references;
pub use texts::{
    c_identifier, config_map_key, env_var_name, http_header_name, in_range, path_segment_name,
    path_segment_prefix, percent, port_name, port_number, relaxed_env_var_name,
};

pub(crate) use owners::parse_group_version;

/// Checks an object's name; the flag tells that it is a prefix (`generateName`).
pub type NameValidator = fn(&str, bool) -> Vec<String>;

/// Names that are DNS subdomains: most kinds, and all custom resources.
pub fn name_is_dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    dns_1123_subdomain(&masked(name, prefix))
}

/// Names that are DNS labels: namespaces and a few more.
pub fn name_is_dns_label(name: &str, prefix: bool) -> Vec<String> {
    dns_1123_label(&masked(name, prefix))
}

/// Names that are DNS-1035 labels: services.
pub fn name_is_dns_1035_label(name: &str, prefix: bool) -> Vec<String> {
    dns_1035_label(&masked(name, prefix))
}

/// Names that only have to fit in a URL path: RBAC objects.
pub fn name_is_path_segment(name: &str, prefix: bool) -> Vec<String> {
    if prefix { path_segment_prefix(name) } else { path_segment_name(name) }
}

/// A prefix may end in a dash, because more text follows. Upstream also drops the character
/// before the dash; kept, as it changes which prefixes pass.
fn masked(name: &str, prefix: bool) -> String {
    match name.strip_suffix('-') {
        Some(rest) if prefix && !rest.is_empty() => {
            let mut kept = rest.to_owned();
            kept.pop();
            kept.push('a');
            kept
        }
        _ => name.to_owned(),
    }
}

/// The reason for a text longer than `limit`.
pub(crate) fn max_length_reason(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

/// The reason for a text that does not match a pattern.
pub(crate) fn pattern_reason(reason: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{reason} (regex used for validation is '{pattern}')");
    }
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{reason} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_may_end_in_a_dash() {
        assert!(name_is_dns_subdomain("web-", true).is_empty());
        assert!(!name_is_dns_subdomain("web-", false).is_empty());
        assert!(!name_is_dns_label("-", true).is_empty());
        assert!(name_is_dns_label("a--", true).is_empty());
        assert!(name_is_dns_1035_label("é-", true).is_empty());
        assert!(name_is_path_segment("..", true).is_empty());
        assert_eq!(name_is_path_segment("..", false), ["may not be '..'"]);
    }
}
