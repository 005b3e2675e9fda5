//! One rule of a role.

use serde_json::{Map, Value};

use crate::{auth::Attributes, object};

/// Who may do what to what. Lists are kept in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRule {
    /// Verbs, or `*`.
    pub verbs: Vec<String>,
    /// API groups, or `*`.
    pub api_groups: Vec<String>,
    /// Resources with subresources, `*/scale`, or `*`.
    pub resources: Vec<String>,
    /// Names of objects; empty for all.
    pub resource_names: Vec<String>,
    /// Paths, `*` at the end for everything below.
    pub non_resource_urls: Vec<String>,
}

impl PolicyRule {
    /// Reads a rule.
    pub fn parse(rule: &Value) -> Self {
        let strings = |key| {
            object::list(rule, &[key]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            verbs: strings("verbs"),
            api_groups: strings("apiGroups"),
            resources: strings("resources"),
            resource_names: strings("resourceNames"),
            non_resource_urls: strings("nonResourceURLs"),
        }
    }

    /// Reads the rules of a role.
    pub fn parse_all(role: &Value) -> Vec<Self> {
        object::list(role, &["rules"]).iter().map(Self::parse).collect()
    }

    /// The rules of somebody who may do everything.
    pub fn everything() -> [Self; 2] {
        let star = || vec!["*".to_owned()];
        [
            Self { verbs: star(), api_groups: star(), resources: star(), ..Self::default() },
            Self { verbs: star(), non_resource_urls: star(), ..Self::default() },
        ]
    }

    /// The rule as an object of the API.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, list) in [
            ("apiGroups", &self.api_groups),
            ("nonResourceURLs", &self.non_resource_urls),
            ("resourceNames", &self.resource_names),
            ("resources", &self.resources),
        ] {
            if !list.is_empty() {
                map.insert(key.to_owned(), list.clone().into());
            }
        }
        // The only list that is written even if empty.
        map.insert("verbs".to_owned(), self.verbs.clone().into());
        Value::Object(map)
    }

    /// Whether the rule speaks for the request.
    pub fn allows(&self, request: &Attributes<'_>) -> bool {
        matches(&self.verbs, request.verb)
            && if request.is_resource {
                matches(&self.api_groups, request.group)
                    && self.matches_resource(request.resource, request.subresource)
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|name| name == request.name))
            } else {
                self.non_resource_urls.iter().any(|url| url_covers(url, request.path))
            }
    }

    fn matches_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|rule| {
            if rule == "*" {
                return true;
            }
            if subresource.is_empty() {
                return rule == resource;
            }
            rule.split_once('/')
                .is_some_and(|(of, sub)| sub == subresource && (of == resource || of == "*"))
        })
    }
}

fn matches(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

/// Whether a path with an optional `*` at the end covers another.
pub(super) fn url_covers(owner: &str, path: &str) -> bool {
    owner == path || (owner.ends_with('*') && path.starts_with(owner.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::UserInfo;
    use serde_json::json;

    #[test]
    fn rules_match_resources() {
        let user = UserInfo::default();
        let rule = |rule: Value| PolicyRule::parse(&rule);
        let ask = |group, resource, subresource, verb, name| Attributes {
            group,
            subresource,
            ..Attributes::of_resource(&user, verb, group, resource, name)
        };
        let pods =
            rule(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}));
        let logs =
            rule(json!({"apiGroups": ["*"], "resources": ["*/log", "pods/exec"], "verbs": ["*"]}));
        let named = rule(
            json!({"apiGroups": [""], "resources": ["*"], "resourceNames": ["a"], "verbs": ["get"]}),
        );
        let cases = [
            (&pods, ask("", "pods", "", "get", "x"), true),
            (&pods, ask("", "pods", "", "list", ""), true),
            (&pods, ask("", "pods", "", "delete", "x"), false),
            (&pods, ask("apps", "pods", "", "get", "x"), false),
            (&pods, ask("", "pods", "log", "get", "x"), false),
            (&logs, ask("", "pods", "log", "get", "x"), true),
            (&logs, ask("x", "pods", "exec", "create", "x"), true),
            (&logs, ask("x", "nodes", "exec", "create", "x"), false),
            (&logs, ask("", "pods", "", "get", "x"), false),
            (&named, ask("", "pods", "status", "get", "a"), true),
            (&named, ask("", "pods", "", "get", "b"), false),
            (&named, ask("", "pods", "", "get", ""), false),
        ];
        for (rule, request, expected) in cases {
            assert_eq!(rule.allows(&request), expected, "{rule:?} {request:?}");
        }
    }

    #[test]
    fn rules_match_paths() {
        let user = UserInfo::default();
        let cases = [
            ("*", "/anything", true),
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz/etcd", false),
            ("/healthz/*", "/healthz/etcd", true),
            ("/healthz/*", "/healthz", false),
            ("/api*", "/apis", true),
        ];
        for (url, path, expected) in cases {
            let rule = PolicyRule::parse(&json!({"nonResourceURLs": [url], "verbs": ["get"]}));
            let request = Attributes {
                is_resource: false,
                path,
                ..Attributes::of_resource(&user, "get", "", "", "")
            };
            assert_eq!(rule.allows(&request), expected, "{url} {path}");
        }
    }
}
