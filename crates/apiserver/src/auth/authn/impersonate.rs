//! Acting as somebody else.
//!
//! A request may name another user in `Impersonate-*` headers. Whether its sender may act as
//! them is asked in several ways: the constrained ones, which allow it for some verbs and some
//! kinds of users only (`impersonate-on:user-info:list` on what is listed and
//! `impersonate:user-info` on the user), and then the old one, `impersonate` on the user, its
//! groups and everything else about it. The first that succeeds counts; if none does, the first
//! refusal is the answer.

use std::collections::BTreeMap;

use fleetwright_kschema::{
    field::{FieldError, Path, aggregate_message},
    gotext::quote,
    names::dns_1123_subdomain,
};
use http::{HeaderMap, HeaderValue};

use super::service_account::NODE_NAME;
use crate::{
    auth::{Attributes, Authorizer, authorize::forbidden, names, node::NODES_GROUP},
    status::ApiError,
    user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, UserInfo},
};

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// From this many values on, one question about all of them is asked first.
const MANY: usize = 4;

/// The user that the headers ask for, if they do. The headers are taken away, so that nothing
/// behind can tell that somebody is impersonated.
pub fn wanted_user(headers: &HeaderMap) -> Result<Option<UserInfo>, ApiError> {
    let first = |name| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(unescape(key)).or_default().push(text(value));
        }
    }
    let wanted = UserInfo {
        name: first(USER),
        uid: first(UID),
        groups: headers.get_all(GROUP).iter().map(text).collect(),
        extra,
    };
    if wanted.name.is_empty() {
        if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
            return Ok(None);
        }
        return Err(ApiError::bad_request(format!(
            "requested {} without impersonating a user name",
            as_go_struct(&wanted)
        )));
    }
    Ok(Some(wanted))
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Decodes `%41`; a key that is not encoded properly is taken as it is.
fn unescape(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let Some((digits, tail)) = rest.split_at_checked(2) else { return key.to_owned() };
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        match u8::from_str_radix(digits, 16) {
            Ok(byte) if !digits.starts_with('+') => bytes.push(byte),
            _ => return key.to_owned(),
        }
        rest = tail;
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

/// The user as Go's `%#v` prints it, which is what the message shows.
fn as_go_struct(user: &UserInfo) -> String {
    let strings = |list: &[String]| {
        let items: Vec<String> = list.iter().map(|item| quote(item)).collect();
        format!("[]string{{{}}}", items.join(", "))
    };
    let groups =
        if user.groups.is_empty() { "[]string(nil)".to_owned() } else { strings(&user.groups) };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let items: Vec<String> =
            user.extra.iter().map(|(k, v)| format!("{}:{}", quote(k), strings(v))).collect();
        format!("map[string][]string{{{}}}", items.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:{extra}}}",
        quote(&user.name),
        quote(&user.uid)
    )
}

/// The ways of acting as somebody else, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A service account acts as the node that its pod runs on.
    AssociatedNode,
    /// Any node.
    ArbitraryNode,
    /// A service account.
    ServiceAccount,
    /// Any other user.
    UserInfo,
    /// The old way, for everyone.
    Unconstrained,
}

const MODES: [Mode; 5] = [
    Mode::AssociatedNode,
    Mode::ArbitraryNode,
    Mode::ServiceAccount,
    Mode::UserInfo,
    Mode::Unconstrained,
];

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Unconstrained => "",
        }
    }

    fn verb(self) -> String {
        match self {
            Self::Unconstrained => "impersonate".to_owned(),
            _ => format!("impersonate:{}", self.name()),
        }
    }

    fn is_constrained(self) -> bool {
        self != Self::Unconstrained
    }

    /// Whether this way exists for the users at all.
    fn applies(self, wanted: &UserInfo, requestor: &UserInfo) -> bool {
        let node = names::node_of_user(&wanted.name);
        let account = names::split_service_account_user(&wanted.name);
        let only_name =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        match self {
            Self::AssociatedNode => {
                only_name
                    && node.is_some()
                    && names::split_service_account_user(&requestor.name).is_some()
                    && matches!(requestor.extra.get(NODE_NAME).map(Vec::as_slice), Some([own]) if Some(own.as_str()) == node)
            }
            Self::ArbitraryNode => only_name && node.is_some(),
            Self::ServiceAccount => only_name && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Unconstrained => true,
        }
    }
}

/// The user to go on with, if `request`'s sender may act as `wanted`.
pub fn impersonate(
    authorizer: &dyn Authorizer,
    wanted: &UserInfo,
    request: &Attributes<'_>,
) -> Result<UserInfo, ApiError> {
    let mut first_error = None;
    for mode in MODES {
        if !mode.applies(wanted, request.user) {
            continue;
        }
        match try_mode(mode, authorizer, wanted, request) {
            Ok(user) => return Ok(user),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    Err(first_error.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
}

fn try_mode(
    mode: Mode,
    authorizer: &dyn Authorizer,
    wanted: &UserInfo,
    request: &Attributes<'_>,
) -> Result<UserInfo, ApiError> {
    // An associated node is allowed to an account on all nodes or on none: what tells the nodes
    // apart is hidden from the authorizer.
    let hidden;
    let requestor = if mode == Mode::AssociatedNode {
        let keys = request.user.extra.keys().cloned().collect();
        let extra = [("authentication.kubernetes.io/associated-node-keys".to_owned(), keys)].into();
        hidden = UserInfo { extra, ..request.user.clone() };
        &hidden
    } else {
        request.user
    };
    if mode.is_constrained() {
        let verb = format!("impersonate-on:{}:{}", mode.name(), request.verb);
        allow(authorizer, &Attributes { user: requestor, verb: &verb, ..*request })?;
    }
    let verb = mode.verb();
    let check = Check { mode, authorizer, requestor, verb: &verb };
    let mut user = wanted.clone();
    check.name(wanted, &mut user)?;
    if !wanted.uid.is_empty() {
        allow(authorizer, &check.ask(AUTHENTICATION, "uids", &wanted.uid))?;
    }
    check.groups(&wanted.groups)?;
    check.extra(&wanted.extra)?;
    let group = if user.name == ANONYMOUS {
        Some(UNAUTHENTICATED)
    } else if user.in_group(UNAUTHENTICATED) {
        None
    } else {
        Some(AUTHENTICATED)
    };
    if let Some(group) = group.filter(|group| !user.in_group(group)) {
        user.groups.push(group.to_owned());
    }
    Ok(user)
}

struct Check<'a> {
    mode: Mode,
    authorizer: &'a dyn Authorizer,
    requestor: &'a UserInfo,
    verb: &'a str,
}

impl<'a> Check<'a> {
    fn ask(&self, group: &'a str, resource: &'a str, name: &'a str) -> Attributes<'a> {
        Attributes {
            version: "v1",
            ..Attributes::of_resource(self.requestor, self.verb, group, resource, name)
        }
    }

    /// Users and groups belong to another API group in the old way.
    fn user_group(&self) -> &'static str {
        if self.mode.is_constrained() { AUTHENTICATION } else { "" }
    }

    fn name(&self, wanted: &'a UserInfo, user: &mut UserInfo) -> Result<(), ApiError> {
        let mut question = self.ask(self.user_group(), "users", &wanted.name);
        if self.mode.is_constrained()
            && let Some(node) = names::node_of_user(&wanted.name)
        {
            question.resource = "nodes";
            question.name = if self.mode == Mode::AssociatedNode { "*" } else { node };
            user.groups = vec![NODES_GROUP.to_owned()];
        }
        if let Some((namespace, name)) = names::split_service_account_user(&wanted.name) {
            question.resource = "serviceaccounts";
            question.namespace = namespace;
            question.name = name;
            if wanted.groups.is_empty() {
                user.groups = names::service_account_groups(namespace);
            }
        }
        allow(self.authorizer, &question)
    }

    fn groups(&self, groups: &[String]) -> Result<(), ApiError> {
        if groups.is_empty() {
            return Ok(());
        }
        let question = |name| Attributes {
            version: "v1",
            ..Attributes::of_resource(self.requestor, self.verb, self.user_group(), "groups", name)
        };
        if self.mode.is_constrained() {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(forbidden(&question(""), why));
            }
            if groups.iter().any(|group| group == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(forbidden(&question(MASTERS), why));
            }
            if groups.len() >= MANY && allow(self.authorizer, &question("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| allow(self.authorizer, &question(group)))
    }

    fn extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), ApiError> {
        if extra.is_empty() {
            return Ok(());
        }
        let question = |key, value| Attributes {
            version: "v1",
            subresource: key,
            ..Attributes::of_resource(
                self.requestor,
                self.verb,
                AUTHENTICATION,
                "userextras",
                value,
            )
        };
        if self.mode.is_constrained() {
            validate_extra(extra).map_err(|why| forbidden(&question("", ""), &why))?;
            let values: usize = extra.values().map(Vec::len).sum();
            if values >= MANY && allow(self.authorizer, &question("*", "*")).is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                allow(self.authorizer, &question(key, value))?;
            }
        }
        Ok(())
    }
}

fn allow(authorizer: &dyn Authorizer, question: &Attributes<'_>) -> Result<(), ApiError> {
    let decision = authorizer.authorize(question);
    if decision.is_allowed() { Ok(()) } else { Err(forbidden(question, &decision.reason)) }
}

fn validate_extra(extra: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Err("impersonating the empty string key in extra is not allowed".to_owned());
        }
        if let Some(error) = aggregate_message(&domain_prefixed_path(key)) {
            return Err(format!("impersonating an invalid key in extra is not allowed: {error}"));
        }
        if *key != key.to_lowercase() {
            let key = quote(key);
            return Err(format!(
                "impersonating a non-lowercase key in extra is not allowed: {key}"
            ));
        }
        if values.iter().any(String::is_empty) {
            return Err("impersonating the empty string value in extra is not allowed".to_owned());
        }
    }
    Ok(())
}

const PATH_CHARACTERS: &str = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";

fn domain_prefixed_path(key: &str) -> Vec<FieldError> {
    let path = Path::new("extra").child("key");
    let Some((host, rest)) =
        key.split_once('/').filter(|(host, rest)| !host.is_empty() && !rest.is_empty())
    else {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![FieldError::invalid(&path, key, why)];
    };
    let mut errors: Vec<FieldError> = dns_1123_subdomain(host)
        .into_iter()
        .map(|why| FieldError::invalid(&path, host, why))
        .collect();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    if !rest.chars().all(allowed) {
        let why = format!("Invalid path (regex used for validation is '{PATH_CHARACTERS}')");
        errors.push(FieldError::invalid(&path, rest, why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::auth::{
        ObjectSource, SuperuserThenRbac,
        rbac::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Rbac},
        source::memory::MemorySource,
    };

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(
                http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        map
    }

    #[test]
    fn headers_are_read() {
        let map = headers(&[
            ("Impersonate-User", "bob"),
            ("Impersonate-Uid", "1"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Extra-Acme.io%2Ffoo", "x"),
            ("Impersonate-Extra-bad%2", "y"),
            ("Accept", "z"),
        ]);
        let user = wanted_user(&map).unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("bob", "1"));
        assert_eq!(user.groups, ["a", "b"]);
        assert_eq!(user.extra["acme.io/foo"], ["x"]);
        assert_eq!(user.extra["bad%2"], ["y"]);
        assert_eq!(wanted_user(&headers(&[("Accept", "z")])), Ok(None));
    }

    #[test]
    fn parts_without_a_name_are_refused() {
        let cases = [
            (
                headers(&[("Impersonate-Group", "bob")]),
                r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"bob"}, Extra:map[string][]string(nil)} without impersonating a user name"#,
            ),
            (
                headers(&[
                    ("Impersonate-Uid", "bob"),
                    ("Impersonate-Extra-Foo%2fbar", "bob"),
                    ("Impersonate-Extra-Foo", "1"),
                    ("Impersonate-Extra-Foo", "2"),
                ]),
                r#"requested &user.DefaultInfo{Name:"", UID:"bob", Groups:[]string(nil), Extra:map[string][]string{"foo":[]string{"1", "2"}, "foo/bar":[]string{"bob"}}} without impersonating a user name"#,
            ),
        ];
        for (map, expected) in cases {
            let error = wanted_user(&map).unwrap_err();
            assert_eq!((error.code().as_u16(), error.message()), (400, expected));
        }
    }

    fn authorizer(rules: &serde_json::Value) -> SuperuserThenRbac {
        let source = Arc::new(MemorySource::default());
        source.put(CLUSTER_ROLES, json!({"metadata": {"name": "r"}, "rules": rules}));
        source.put(CLUSTER_ROLE_BINDINGS, json!({
            "metadata": {"name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "name": "alice"}, {"kind": "User", "name": "system:serviceaccount:ns:robot"}],
        }));
        SuperuserThenRbac::new(Arc::new(Rbac::new(source as Arc<dyn ObjectSource>)))
    }

    fn run(rules: &serde_json::Value, wanted: &UserInfo) -> Result<UserInfo, String> {
        let alice = UserInfo::new("alice", &[]);
        let request = Attributes::of_resource(&alice, "list", "", "pods", "");
        impersonate(&authorizer(rules), wanted, &request).map_err(|e| e.message().to_owned())
    }

    #[test]
    fn the_old_verb_allows_each_part() {
        let rules = json!([
            {"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"], "verbs": ["impersonate"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["uids", "userextras/scopes"], "verbs": ["impersonate"]},
        ]);
        let mut bob = UserInfo::new("bob", &["g"]);
        bob.uid = "1".into();
        bob.extra.insert("scopes".into(), vec!["view".into()]);
        assert_eq!(run(&rules, &bob).unwrap().groups, ["g", AUTHENTICATED]);
        let robot = run(&rules, &UserInfo::new("system:serviceaccount:ns:robot", &[])).unwrap();
        assert_eq!(
            robot.groups,
            ["system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED]
        );
        let nobody = run(&rules, &UserInfo::new(ANONYMOUS, &[])).unwrap();
        assert_eq!(nobody.groups, [UNAUTHENTICATED]);
        let out = run(&rules, &UserInfo::new("x", &[UNAUTHENTICATED])).unwrap();
        assert_eq!(out.groups, [UNAUTHENTICATED]);
    }

    #[test]
    fn refusals_name_the_first_way_that_applies() {
        let cases = [
            (
                "bob",
                r#"pods is forbidden: User "alice" cannot impersonate-on:user-info:list resource "pods" in API group "" at the cluster scope"#,
            ),
            (
                "system:serviceaccount:default:foo",
                r#"pods is forbidden: User "alice" cannot impersonate-on:serviceaccount:list resource "pods" in API group "" at the cluster scope"#,
            ),
            (
                "system:node:n1",
                r#"pods is forbidden: User "alice" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" at the cluster scope"#,
            ),
        ];
        for (wanted, expected) in cases {
            assert_eq!(run(&json!([]), &UserInfo::new(wanted, &[])).unwrap_err(), expected);
        }
    }

    #[test]
    fn constrained_ways_allow_some_verbs_only() {
        let rules = json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["impersonate-on:user-info:list"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["users", "groups"], "verbs": ["impersonate:user-info"]},
        ]);
        assert!(run(&rules, &UserInfo::new("bob", &["g"])).is_ok());
        assert_eq!(
            run(&rules, &UserInfo::new("bob", &[MASTERS])).unwrap_err(),
            r#"groups.authentication.k8s.io "system:masters" is forbidden: User "alice" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed"#
        );
        let mut extra = UserInfo::new("bob", &[]);
        extra.extra.insert("scopes".into(), vec!["x".into()]);
        assert!(run(&rules, &extra).unwrap_err().ends_with(
            r#"impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")"#
        ));
    }

    #[test]
    fn accounts_act_as_their_own_node() {
        let rules = json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["impersonate-on:associated-node:list"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["nodes"], "verbs": ["impersonate:associated-node"]},
        ]);
        let mut robot = UserInfo::new("system:serviceaccount:ns:robot", &[]);
        robot.extra.insert(NODE_NAME.into(), vec!["n1".into()]);
        let request = Attributes::of_resource(&robot, "list", "", "pods", "");
        let authorizer = authorizer(&rules);
        let node = |name: &str| UserInfo::new(name, &[]);
        let user = impersonate(&authorizer, &node("system:node:n1"), &request).unwrap();
        assert_eq!(user.groups, ["system:nodes", AUTHENTICATED]);
        assert!(impersonate(&authorizer, &node("system:node:n2"), &request).is_err());
    }
}
