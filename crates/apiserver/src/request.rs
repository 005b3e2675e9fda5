//! What a request asks for, as routing, authorization and admission see it.

use std::sync::Arc;

use fleetwright_kschema::names;
use http::Method;

use crate::{
    query::{Query, percent_decode},
    selector::FieldSelector,
    user::UserInfo,
};

/// The parts of a request's path and method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether the path names a resource (`/api/v1/pods`) or not (`/healthz`).
    pub is_resource: bool,
    /// The path.
    pub path: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or the
    /// lower-case method for paths that are not resources.
    pub verb: String,
    /// The API group.
    pub group: String,
    /// The version in the path.
    pub version: String,
    /// The namespace in the path.
    pub namespace: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The object's name.
    pub name: String,
    /// The field selector of a list, watch or deletion of many.
    pub field_selector: String,
    /// How many segments follow the subresource (`/proxy/a/b`).
    pub extra_segments: usize,
}

/// What is known about a request while it is handled.
#[derive(Clone, Debug)]
pub struct Context {
    /// Who asks.
    pub user: Arc<UserInfo>,
    /// For what.
    pub info: Arc<RequestInfo>,
    /// The `User-Agent` header.
    pub user_agent: Arc<str>,
}

/// What a write does, as admission sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change.
    Update,
    /// A deletion.
    Delete,
}

const NAMESPACE_SUBRESOURCES: &[&str] = &["status", "finalize"];

impl RequestInfo {
    /// Reads a request line.
    pub fn parse(method: &Method, path: &str, query: &Query) -> Self {
        let path = percent_decode(path, false).unwrap_or_else(|| path.to_owned());
        let mut info = Self {
            verb: method.as_str().to_ascii_lowercase(),
            path: path.clone(),
            ..Self::default()
        };
        let trimmed = path.trim_matches('/');
        let parts: Vec<&str> =
            if trimmed.is_empty() { vec![] } else { trimmed.split('/').collect() };
        let mut rest = match parts.as_slice() {
            ["api", rest @ ..] if rest.len() >= 2 => rest,
            ["apis", group, rest @ ..] if rest.len() >= 2 => {
                (*group).clone_into(&mut info.group);
                rest
            }
            _ => return info,
        };
        info.is_resource = true;
        rest[0].clone_into(&mut info.version);
        rest = &rest[1..];

        let verb_in_path = rest[0] == "watch" && rest.len() >= 2;
        if verb_in_path {
            "watch".clone_into(&mut info.verb);
            rest = &rest[1..];
        } else {
            match *method {
                Method::POST => "create",
                Method::GET | Method::HEAD => "get",
                Method::PUT => "update",
                Method::PATCH => "patch",
                Method::DELETE => "delete",
                _ => "",
            }
            .clone_into(&mut info.verb);
        }
        if rest[0] == "namespaces" && rest.len() > 1 {
            rest[1].clone_into(&mut info.namespace);
            if rest.len() > 2 && !NAMESPACE_SUBRESOURCES.contains(&rest[2]) {
                rest = &rest[2..];
            }
        }
        rest[0].clone_into(&mut info.resource);
        if let Some(name) = rest.get(1) {
            (*name).clone_into(&mut info.name);
        }
        if let Some(subresource) = rest.get(2) {
            (*subresource).clone_into(&mut info.subresource);
            info.extra_segments = rest.len() - 3;
        }
        if info.name.is_empty() && info.verb == "get" {
            let watch = query.flag("watch").unwrap_or(false);
            if watch { "watch" } else { "list" }.clone_into(&mut info.verb);
        }
        if info.name.is_empty()
            && matches!(info.verb.as_str(), "list" | "watch")
            && let Ok(fields) = FieldSelector::parse(query.text("fieldSelector"))
            && let Some(name) = fields.exact("metadata.name")
            && names::path_segment_name(name).is_empty()
        {
            name.clone_into(&mut info.name);
        }
        if info.name.is_empty() && info.verb == "delete" {
            "deletecollection".clone_into(&mut info.verb);
        }
        if matches!(info.verb.as_str(), "list" | "watch" | "deletecollection") {
            query.text("fieldSelector").clone_into(&mut info.field_selector);
        }
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_paths() {
        for (method, url, expected) in [
            (Method::GET, "/api/v1/pods", "list /pods - - -"),
            (Method::GET, "/api/v1/pods?watch=true", "watch /pods - - -"),
            (Method::GET, "/api/v1/namespaces/a/pods/b", "get /pods a b -"),
            (Method::PUT, "/api/v1/namespaces/a/pods/b/status", "update /pods a b status"),
            (Method::GET, "/api/v1/namespaces/a", "get /namespaces a a -"),
            (Method::PUT, "/api/v1/namespaces/a/finalize", "update /namespaces a a finalize"),
            (
                Method::DELETE,
                "/apis/apps/v1/namespaces/a/deployments",
                "deletecollection apps/deployments a - -",
            ),
            (Method::GET, "/apis/apps/v1/watch/deployments", "watch apps/deployments - - -"),
            (Method::GET, "/api/v1/nodes?fieldSelector=metadata.name%3Dn", "list /nodes - n -"),
        ] {
            let (path, query) = url.split_once('?').unwrap_or((url, ""));
            let info = RequestInfo::parse(&method, path, &Query::parse(query));
            let dash = |s: &str| if s.is_empty() { "-".to_owned() } else { s.to_owned() };
            let seen = format!(
                "{} {}/{} {} {} {}",
                info.verb,
                info.group,
                info.resource,
                dash(&info.namespace),
                dash(&info.name),
                dash(&info.subresource)
            );
            assert_eq!(seen, expected, "{url}");
        }
        let info = RequestInfo::parse(&Method::GET, "/healthz", &Query::default());
        assert!(!info.is_resource);
        assert_eq!(info.verb, "get");
    }
}
