//! User names with a meaning: those of service accounts and nodes.

use fleetwright_kschema::names::{dns_1123_label, dns_1123_subdomain};

/// The group of all service accounts.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
const SERVICE_ACCOUNT_USER_PREFIX: &str = "system:serviceaccount:";
const NODE_USER_PREFIX: &str = "system:node:";

/// The user name of a service account.
pub fn service_account_user(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_USER_PREFIX}{namespace}:{name}")
}

/// The groups of a service account.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")]
}

/// Whether `user` is the service account `name` of `namespace`.
pub fn is_service_account(user: &str, namespace: &str, name: &str) -> bool {
    user.strip_prefix(SERVICE_ACCOUNT_USER_PREFIX)
        .and_then(|rest| rest.strip_prefix(namespace))
        .and_then(|rest| rest.strip_prefix(':'))
        == Some(name)
}

/// The namespace and name of the service account that a user name stands for.
pub fn split_service_account_user(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_USER_PREFIX)?.split_once(':')?;
    (dns_1123_label(namespace).is_empty() && dns_1123_subdomain(name).is_empty())
        .then_some((namespace, name))
}

/// The node that a user name stands for.
pub fn node_of_user(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_USER_PREFIX).filter(|name| dns_1123_subdomain(name).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_account_users_split_and_match() {
        let cases = [
            ("system:serviceaccount:ns:name", Some(("ns", "name"))),
            ("system:serviceaccount:ns:na.me", Some(("ns", "na.me"))),
            ("system:serviceaccount:n.s:name", None),
            ("system:serviceaccount:ns:name:more", None),
            ("system:serviceaccount::name", None),
            ("system:serviceaccount:ns:", None),
            ("alice", None),
        ];
        for (user, expected) in cases {
            assert_eq!(split_service_account_user(user), expected, "{user}");
        }
        assert!(is_service_account("system:serviceaccount:a:b", "a", "b"));
        assert!(!is_service_account("system:serviceaccount:a:bc", "a", "b"));
        assert!(!is_service_account("system:serviceaccount:ab:b", "a", "b"));
        assert_eq!(node_of_user("system:node:n1.example"), Some("n1.example"));
        assert_eq!(node_of_user("system:node:N1"), None);
    }
}
