//! Paths that are not resources: health, version, discovery, OpenAPI.

use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use serde_json::{Value, json};

use crate::{
    discovery::{self, Format},
    gvk::GroupVersion,
    openapi,
    query::Query,
    request::RequestInfo,
    server::Server,
    service::{Answer, ResponseBody, full, respond, unknown_group},
    status::{ApiError, Result},
};

/// The version of Kubernetes whose behaviour is reproduced.
const KUBERNETES_VERSION: (&str, &str, &str) = ("1", "37", "v1.37.1");

const HEALTH_CHECKS: &[&str] = &["ping", "log", "etcd", "poststarthook/crd-informer-synced"];

pub(crate) fn answer(server: &Server, parts: &Parts, info: &RequestInfo) -> Result<Answer> {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Err(ApiError::page_not_found());
    }
    let path = info.path.trim_end_matches('/');
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let response = match path {
        "" => json_response(&paths(server)),
        "/healthz" | "/livez" | "/readyz" => health(path, &query),
        "/version" => json_response(&version()),
        "/api" | "/apis" => discovery_root(server, parts, path == "/api"),
        // JSON that the real server calls text.
        "/openapi/v3" => text(&openapi::index(server).to_string()),
        "/openapi/v2" => openapi_v2(parts),
        _ => {
            if let Some(rest) = path.strip_prefix("/openapi/v3/") {
                openapi_document(server, parts, rest)?
            } else if let Some(check) = path
                .strip_prefix("/readyz/")
                .or_else(|| path.strip_prefix("/livez/"))
                .or_else(|| path.strip_prefix("/healthz/"))
            {
                if !HEALTH_CHECKS.contains(&check) {
                    return Err(ApiError::page_not_found());
                }
                text("ok")
            } else if path == "/api/v1" {
                discovery_version(server, "", "v1")?
            } else if let Some(rest) = path.strip_prefix("/apis/") {
                match rest.split_once('/') {
                    Some((group, version)) if !version.contains('/') => {
                        discovery_version(server, group, version)?
                    }
                    None => discovery_group(server, rest)?,
                    Some(_) => return Err(ApiError::page_not_found()),
                }
            } else {
                return Err(ApiError::page_not_found());
            }
        }
    };
    Ok(Answer::Response(response))
}

fn json_response(value: &Value) -> Response<ResponseBody> {
    respond(StatusCode::OK, "application/json", full(value.to_string()))
}

fn text(text: &str) -> Response<ResponseBody> {
    let mut response = respond(StatusCode::OK, "text/plain; charset=utf-8", full(text.to_owned()));
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn health(path: &str, query: &Query) -> Response<ResponseBody> {
    if query.flag("verbose").is_none() {
        return text("ok");
    }
    let mut lines: Vec<String> =
        HEALTH_CHECKS.iter().map(|check| format!("[+]{check} ok")).collect();
    lines.push(format!("{} check passed\n", path.trim_start_matches('/')));
    text(&lines.join("\n"))
}

fn version() -> Value {
    let (major, minor, full) = KUBERNETES_VERSION;
    json!({
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": "36",
        "gitVersion": full,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform_arch()),
    })
}

fn platform_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn paths(server: &Server) -> Value {
    let mut paths = vec![
        "/api".to_owned(),
        "/apis".to_owned(),
        "/healthz".to_owned(),
        "/livez".to_owned(),
        "/openapi/v3".to_owned(),
        "/readyz".to_owned(),
        "/version".to_owned(),
    ];
    for (group, versions) in discovery::groups(&server.registry().all()) {
        if !group.is_empty() {
            paths.push(format!("/apis/{group}"));
        }
        for version in versions {
            let root = if group.is_empty() { "/api" } else { "/apis" };
            paths.push(format!("{root}/{version}"));
        }
    }
    paths.sort();
    json!({"paths": paths})
}

fn discovery_root(server: &Server, parts: &Parts, core: bool) -> Response<ResponseBody> {
    let resources = server.registry().all();
    let format = Format::of(&parts.headers);
    let document = match format {
        Format::Aggregated(version) => discovery::aggregated(&resources, core, version),
        Format::Plain if core => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [
                {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address(parts)},
            ],
        }),
        Format::Plain => {
            let groups: Vec<Value> = discovery::groups(&resources)
                .iter()
                .filter(|(group, _)| !group.is_empty())
                .map(|(group, versions)| discovery::group(group, versions))
                .collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
    };
    let etag = format!("\"{}\"", discovery::etag(&document));
    if matches!(format, Format::Aggregated(_)) && is_known(parts, &etag) {
        return not_modified(&etag);
    }
    let mut response = respond(StatusCode::OK, &format.content_type(), full(document.to_string()));
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    if matches!(format, Format::Aggregated(_)) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
        set_etag(&mut response, &etag);
    }
    response
}

/// The address that the client used.
fn server_address(parts: &Parts) -> String {
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    authority.or(host).unwrap_or_default().to_owned()
}

fn discovery_group(server: &Server, name: &str) -> Result<Response<ResponseBody>> {
    let groups = discovery::groups(&server.registry().all());
    let (group, versions) = groups
        .iter()
        .find(|(group, _)| **group == *name && !name.is_empty())
        .ok_or_else(ApiError::page_not_found)?;
    let mut document = discovery::group(group, versions);
    document["kind"] = "APIGroup".into();
    document["apiVersion"] = "v1".into();
    Ok(json_response(&document))
}

fn discovery_version(
    server: &Server,
    group: &str,
    version: &str,
) -> Result<Response<ResponseBody>> {
    let resources = server.registry().all();
    let wanted = GroupVersion::new(group, version);
    let served =
        discovery::groups(&resources).iter().any(|(_, versions)| versions.contains(&wanted));
    if !served {
        return Err(unknown_group(server.registry(), group));
    }
    Ok(json_response(&discovery::resource_list(&wanted, &resources)))
}

/// The old document has no paths and no definitions: kubectl asks for it only about kinds that
/// the new ones do not know, and then takes nothing found as leave to go on.
fn openapi_v2(parts: &Parts) -> Response<ResponseBody> {
    const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("proto-openapi")) {
        return respond(StatusCode::OK, PROTOBUF, full(""));
    }
    json_response(&json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES_VERSION.2},
        "paths": {},
    }))
}

fn openapi_document(server: &Server, parts: &Parts, path: &str) -> Result<Response<ResponseBody>> {
    let document = openapi::document(server, path).ok_or_else(ApiError::page_not_found)?;
    let etag = format!("\"{}\"", openapi::hash(&document));
    if is_known(parts, &etag) {
        return Ok(not_modified(&etag));
    }
    let mut response = respond(StatusCode::OK, "application/json", full(document));
    set_etag(&mut response, &etag);
    Ok(response)
}

fn is_known(parts: &Parts, etag: &str) -> bool {
    parts
        .headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == etag.as_bytes())
}

/// The client has the document already. It keeps the headers that came with it.
fn not_modified(etag: &str) -> Response<ResponseBody> {
    let mut response = respond(StatusCode::NOT_MODIFIED, "", full(""));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    set_etag(&mut response, etag);
    response
}

fn set_etag(response: &mut Response<ResponseBody>, etag: &str) {
    if let Ok(value) = HeaderValue::from_str(etag) {
        response.headers_mut().insert(header::ETAG, value);
    }
}
