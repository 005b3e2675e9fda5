//! GET of a collection.

use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_URL_SAFE_NO_PAD,
};
use bytes::Bytes;
use fleetwright_kstore::{At, ListError, Scope};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Body, Call, Reply, Shape, metadata_only};
use crate::{
    options::{ListOptions, VersionMatch},
    status::{ApiError, Cause, Details, Result},
    storage::StoredObject,
};

/// How long a request waits for a revision that has not happened yet.
const FRESHNESS_WAIT: std::time::Duration = std::time::Duration::from_secs(3);

const TOO_OLD: &str = "The resourceVersion for the provided list is too old.";
const INCONSISTENT: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// A part of a list.
pub(crate) struct Page {
    pub revision: u64,
    pub items: Vec<StoredObject>,
    continue_token: String,
    remaining: Option<usize>,
}

/// Where a list goes on.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Token {
    v: String,
    /// The revision of the list; -1 for "whatever is current".
    rv: i64,
    /// The name (cluster-scoped) or `namespace/name` of the last object, and a NUL byte.
    start: String,
}

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

impl Call {
    pub(crate) async fn list(&mut self) -> Result<Reply> {
        let options = self.list_options(false)?;
        self.wait_for_version(&options).await?;
        let page = self.page(&options)?;
        let mut metadata = json!({"resourceVersion": page.revision.to_string()});
        if !page.continue_token.is_empty() {
            metadata["continue"] = page.continue_token.clone().into();
        }
        if let Some(remaining) = page.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        match self.shape {
            Shape::Plain => self.plain_list(&page, &metadata),
            Shape::Metadata => {
                let items: Vec<Value> = page
                    .items
                    .iter()
                    .map(|s| self.read(s).map(metadata_only))
                    .collect::<Result<_>>()?;
                Ok(Reply::json(
                    StatusCode::OK,
                    json!({
                        "kind": "PartialObjectMetadataList",
                        "apiVersion": "meta.k8s.io/v1",
                        "metadata": metadata,
                        "items": items,
                    }),
                ))
            }
            Shape::Table(include) => {
                let items: Vec<Value> =
                    page.items.iter().map(|s| self.read(s)).collect::<Result<_>>()?;
                Ok(Reply::json(StatusCode::OK, self.table(include, &metadata, items, true)))
            }
        }
    }

    /// A list as it is, made of stored bytes wherever they are in the right version.
    fn plain_list(&self, page: &Page, metadata: &Value) -> Result<Reply> {
        let head = format!(
            r#"{{"kind":{},"apiVersion":{},"metadata":{metadata},"items":["#,
            json!(&*self.resource.list_kind),
            json!(self.resource.group_version().to_string()),
        );
        let mut pieces = Vec::with_capacity(page.items.len() * 2 + 2);
        pieces.push(Bytes::from(head));
        for (index, stored) in page.items.iter().enumerate() {
            if index > 0 {
                pieces.push(Bytes::from_static(b","));
            }
            if self.is_in_version(stored) {
                pieces.push(stored.json.clone());
            } else {
                let mut value = self.read(stored)?;
                if !self.resource.is_custom()
                    && let Some(map) = value.as_object_mut()
                {
                    map.remove("apiVersion");
                    map.remove("kind");
                }
                pieces.push(Bytes::from(value.to_string()));
            }
        }
        pieces.push(Bytes::from_static(b"]}"));
        Ok(Reply::ok(Body::Pieces(pieces)))
    }

    /// The options of a list or watch, with the path's name as a field selector.
    pub(crate) fn list_options(&self, watch: bool) -> Result<ListOptions> {
        let mut options = ListOptions::parse(&self.query, watch)?;
        for term in &mut options.fields.0 {
            let known = matches!(term.field.as_str(), "metadata.name")
                || (term.field == "metadata.namespace" && self.resource.namespaced)
                || self.selectable(&Value::Null, &term.field).is_some();
            if !known {
                return Err(ApiError::bad_request(self.unknown_field_selector(&term.field)));
            }
        }
        let named = &self.context.info.name;
        if !named.is_empty() && options.fields.exact("metadata.name").is_none() {
            if !options.fields.is_empty() {
                return Err(ApiError::bad_request(
                    "fieldSelector metadata.name doesn't match requested name",
                ));
            }
            options.fields.0.push(crate::selector::FieldTerm {
                field: "metadata.name".to_owned(),
                value: named.clone(),
                negated: false,
            });
        }
        Ok(options)
    }

    /// The refusal of a field that cannot be selected. Kinds without selectable fields of their
    /// own answer in other words.
    fn unknown_field_selector(&self, field: &str) -> String {
        const OWN: &[&str] = &[
            "spec.nodeName",
            "spec.unschedulable",
            "status.phase",
            "type",
            "reason",
            "status.replicas",
            "status.successful",
        ];
        let kind = &self.resource.kind;
        let own = OWN.iter().any(|field| kind.selectable_field(&Value::Null, field).is_some());
        if self.resource.is_custom() || own {
            return format!("field label not supported: {field}");
        }
        format!(
            "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    }

    /// The value of a selectable field; `None` when it cannot be selected.
    pub(crate) fn selectable(&self, object: &Value, field: &str) -> Option<String> {
        match field {
            "metadata.name" => Some(crate::object::name(object).to_owned()),
            "metadata.namespace" => Some(crate::object::namespace(object).to_owned()),
            other => self.resource.kind.selectable_field(object, other),
        }
    }

    /// Whether a stored object is among those that the options select.
    pub(crate) fn selects(&self, options: &ListOptions, stored: &StoredObject) -> bool {
        if !options.labels.matches(|key| stored.meta.label(key)) {
            return false;
        }
        let mut parsed: Option<Value> = None;
        options.fields.matches(|field| match field {
            "metadata.name" => stored.key.name.to_string(),
            "metadata.namespace" => stored.key.namespace.to_string(),
            other => {
                if let Some((_, value)) = stored.meta.fields.iter().find(|(name, _)| *name == other)
                {
                    return value.to_string();
                }
                let object = parsed.get_or_insert_with(|| self.read(stored).unwrap_or_default());
                self.selectable(object, other).unwrap_or_default()
            }
        })
    }

    /// Waits until the revision that the client knows has been reached here.
    pub(crate) async fn wait_for_version(&self, options: &ListOptions) -> Result<()> {
        let wanted = parse_version(&options.resource_version)?;
        let storage = self.server.storage();
        if wanted <= storage.revision() {
            return Ok(());
        }
        if timeout(FRESHNESS_WAIT, storage.wait_for(wanted)).await.is_ok() {
            return Ok(());
        }
        Err(too_large(wanted, storage.revision()))
    }

    /// One page of a list.
    pub(crate) fn page(&self, options: &ListOptions) -> Result<Page> {
        let scope = self.scope();
        let storage = self.server.storage();
        let version = parse_version(&options.resource_version)?;
        let mut at = At::Latest;
        let mut after: Option<(String, String)> = None;
        if options.continue_token.is_empty() {
            let exact = options.version_match == Some(VersionMatch::Exact)
                || (options.version_match.is_none() && options.limit > 0 && version > 0);
            if exact {
                at = At::Revision(version);
            }
        } else {
            if !matches!(options.resource_version.as_str(), "" | "0") {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let token = decode_token(&options.continue_token)?;
            if let Ok(revision) = u64::try_from(token.rv) {
                at = At::Revision(revision);
            }
            let start = token.start.trim_end_matches('\0');
            after = Some(match start.split_once('/') {
                Some((namespace, name)) if self.resource.namespaced => {
                    (namespace.to_owned(), name.to_owned())
                }
                _ => (self.namespace().to_owned(), start.to_owned()),
            });
        }
        let from = after.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
        let listing = storage.list(&scope, at, from).map_err(|error| match error {
            ListError::Future => too_large(version, storage.revision()),
            ListError::Compacted => match &after {
                None => ApiError::expired(TOO_OLD),
                Some((namespace, name)) => {
                    ApiError::expired(INCONSISTENT).with_continue(self.token(-1, namespace, name))
                }
            },
        })?;
        let revision = listing.revision;
        let unlimited = options.limit <= 0
            || (options.resource_version == "0" && options.continue_token.is_empty());
        let limit = if unlimited {
            usize::MAX
        } else {
            usize::try_from(options.limit).unwrap_or(usize::MAX)
        };
        let selective = !options.labels.is_empty() || !options.fields.is_empty();
        let mut page =
            Page { revision, items: Vec::new(), continue_token: String::new(), remaining: None };
        let total = listing.items.len();
        for (index, stored) in listing.items.into_iter().enumerate() {
            if selective && !self.selects(options, &stored) {
                continue;
            }
            if page.items.len() == limit {
                if let Some(last) = page.items.last() {
                    let revision = i64::try_from(revision).unwrap_or(i64::MAX);
                    page.continue_token = self.token(revision, &last.key.namespace, &last.key.name);
                }
                if !selective {
                    page.remaining = Some(total - index);
                }
                break;
            }
            page.items.push(stored);
        }
        Ok(page)
    }

    fn token(&self, rv: i64, namespace: &str, name: &str) -> String {
        let all_namespaces = self.resource.namespaced && self.namespace().is_empty();
        let start =
            if all_namespaces { format!("{namespace}/{name}\0") } else { format!("{name}\0") };
        let token = Token { v: TOKEN_VERSION.to_owned(), rv, start };
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    /// The objects that this request is about.
    pub(crate) fn scope(&self) -> Scope {
        let resource = self.resource.storage.clone();
        match self.namespace() {
            "" => Scope::all(resource),
            namespace => Scope::in_namespace(resource, namespace),
        }
    }
}

/// Reads a resourceVersion; absent is 0.
pub(crate) fn parse_version(text: &str) -> Result<u64> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|error: std::num::ParseIntError| {
        let why = match error.kind() {
            std::num::IntErrorKind::PosOverflow => "value out of range",
            _ => "invalid syntax",
        };
        let quoted = fleetwright_kschema::gotext::quote(text);
        ApiError::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {why}"
        ))
    })
}

/// A revision that is further than the store.
pub(crate) fn too_large(wanted: u64, current: u64) -> ApiError {
    ApiError::timeout(&format!("Too large resource version: {wanted}, current: {current}"), 1)
        .with_details(Details {
            causes: vec![Cause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: "Too large resource version".to_owned(),
                field: String::new(),
            }],
            retry_after_seconds: 1,
            ..Details::default()
        })
}

fn decode_token(text: &str) -> Result<Token> {
    let invalid = |why: String| {
        ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    };
    let bytes = decode_base64(text)
        .map_err(|at| invalid(format!("illegal base64 data at input byte {at}")))?;
    let parsed = crate::codec::parse_json(&bytes).map_err(invalid)?;
    let token: Token = serde_json::from_value(parsed.value).unwrap_or_default();
    if token.v != TOKEN_VERSION {
        return Err(invalid(format!("server does not recognize this encoded version {}", token.v)));
    }
    if token.rv == 0 {
        return Err(invalid(format!(
            "incorrect encoded start resourceVersion (version {TOKEN_VERSION})"
        )));
    }
    if token.start.is_empty() {
        return Err(invalid(format!("encoded start key empty (version {TOKEN_VERSION})")));
    }
    Ok(token)
}

/// Decodes as Go does, which is not strict about the last bits; an error is the place of the
/// first byte that does not belong there.
fn decode_base64(text: &str) -> std::result::Result<Vec<u8>, usize> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::URL_SAFE,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::RequireNone),
    );
    LENIENT.decode(text).map_err(|error| match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => {
            at
        }
        _ => text.len(),
    })
}
