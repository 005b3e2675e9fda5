//! The virtual resources that answer questions about access. Nothing of them is stored.

use fleetwright_kschema::builtin::body;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::{
    auth::reviews,
    codec::{BodyFormat, parse_yaml},
    handlers::{Reply, manager_of_agent},
    managed::manage_review,
    request::Context,
    server::Server,
    status::{ApiError, Result},
};

/// A resource that only knows `create`.
pub struct ReviewResource {
    /// Its group.
    pub group: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Its plural name.
    pub plural: &'static str,
    /// Its singular name.
    pub singular: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Whether it is asked in a namespace.
    pub namespaced: bool,
}

const fn review(
    group: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    namespaced: bool,
) -> ReviewResource {
    ReviewResource { group, version: "v1", plural, singular, kind, namespaced }
}

const AUTHN: &str = "authentication.k8s.io";
const AUTHZ: &str = "authorization.k8s.io";

/// All of them.
pub const RESOURCES: &[ReviewResource] = &[
    review(AUTHN, "selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview", false),
    review(AUTHN, "tokenreviews", "tokenreview", "TokenReview", false),
    review(
        AUTHZ,
        "localsubjectaccessreviews",
        "localsubjectaccessreview",
        "LocalSubjectAccessReview",
        true,
    ),
    review(
        AUTHZ,
        "selfsubjectaccessreviews",
        "selfsubjectaccessreview",
        "SelfSubjectAccessReview",
        false,
    ),
    review(
        AUTHZ,
        "selfsubjectrulesreviews",
        "selfsubjectrulesreview",
        "SelfSubjectRulesReview",
        false,
    ),
    review(AUTHZ, "subjectaccessreviews", "subjectaccessreview", "SubjectAccessReview", false),
];

/// The review that a path names.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static ReviewResource> {
    RESOURCES.iter().find(|r| r.group == group && r.version == version && r.plural == plural)
}

/// Answers a review.
pub(crate) fn answer(
    server: &Server,
    review: &ReviewResource,
    context: &Context,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Reply> {
    if context.info.verb != "create" || !context.info.name.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    if review.namespaced == context.info.namespace.is_empty() {
        return Err(ApiError::path_not_found());
    }
    let api_version = format!("{}/{}", review.group, review.version);
    let mut object = read(review, &api_version, headers, body)?;
    if matches!(review.kind, "SelfSubjectAccessReview" | "SubjectAccessReview") {
        object = manage_review(server, object, &manager_of_agent(&context.user_agent));
    }
    let access = server.access();
    let (user, authorizer) = (&context.user, access.authorizer());
    let answered = match review.kind {
        "SelfSubjectReview" => reviews::self_subject_review(user, server.now(), &object),
        "TokenReview" => reviews::token_review(access.authenticators(), &object)?,
        "SelfSubjectAccessReview" => {
            reviews::self_subject_access_review(authorizer, user, &object)?
        }
        "LocalSubjectAccessReview" => {
            reviews::local_subject_access_review(authorizer, &context.info.namespace, &object)?
        }
        "SelfSubjectRulesReview" => reviews::self_subject_rules_review(authorizer, user, &object)?,
        _ => reviews::subject_access_review(authorizer, &object)?,
    };
    Ok(Reply::json(StatusCode::CREATED, answered))
}

fn read(
    review: &ReviewResource,
    api_version: &str,
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<Value> {
    let refuse = |why: &str| ApiError::bad_request(body::refusal(review.kind, None, why, bytes));
    let json = match BodyFormat::of(headers, true)? {
        BodyFormat::Json => bytes.to_vec(),
        BodyFormat::Yaml => {
            let parsed = parse_yaml(bytes, true).map_err(|why| refuse(&why))?;
            parsed.value.to_string().into_bytes()
        }
        BodyFormat::Protobuf => {
            let decoded = fleetwright_kproto::decode(bytes, Some((api_version, review.kind)))
                .map_err(|error| refuse(&error.to_string()))?;
            decoded.object.to_string().into_bytes()
        }
    };
    let read = body::read(&json, api_version, review.kind).map_err(ApiError::bad_request)?;
    if read.meta.api_version != api_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({api_version})",
            read.meta.api_version
        )));
    }
    let mut object = read.decoded.object;
    crate::object::set(&mut object, &["apiVersion"], api_version);
    crate::object::set(&mut object, &["kind"], review.kind);
    Ok(object)
}
