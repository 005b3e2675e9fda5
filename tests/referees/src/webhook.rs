//! A webhook server for scripts about admission: what it answers is chosen by the path.
//!
//! | path | answer |
//! |---|---|
//! | `/allow` | yes |
//! | `/deny` | no, with a status of its own |
//! | `/refuse` | no, without a reason |
//! | `/warn` | yes, with warnings |
//! | `/mutate` | yes, with a patch that adds the annotation `mutated` |
//! | `/mutate-badly` | yes, with a patch that cannot be applied |
//! | `/tell` | no; the message tells what was asked |
//! | `/slow` | yes, after five seconds |
//! | `/broken` | an error of the server |
//! | `/garbage` | something that is no review |
//! | `/stranger` | yes, to another question |

use std::convert::Infallible;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::certificates::Certificates;

/// A webhook server on loopback. It ends with the value.
#[derive(Debug)]
pub struct WebhookServer {
    /// `https://127.0.0.1:PORT`.
    pub url: String,
    /// What goes into `caBundle`.
    pub authority: String,
    _accepting: JoinSet<()>,
}

impl WebhookServer {
    /// Starts the server.
    pub async fn start() -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let certificates = Certificates::make(folder.path())?;
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&fs::read(&certificates.server_certificate_file)?)
                .collect::<Result<_, _>>()
                .context("the server's certificate is not PEM")?;
        let key = PrivateKeyDer::from_pem_slice(&fs::read(&certificates.server_key_file)?)
            .context("the server's key is not PEM")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("no TLS version is left")?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .context("the server's certificate is refused")?;

        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("no free port")?;
        let url = format!("https://{}", listener.local_addr().context("no address")?);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, TlsAcceptor::from(Arc::new(config))));
        Ok(Self { url, authority: BASE64.encode(&certificates.authority), _accepting: accepting })
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, acceptor.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor) {
    if let Ok(stream) = acceptor.accept(stream).await {
        // A client that goes away is no concern of the server's.
        drop(
            http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await,
        );
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let uid = review["request"]["uid"].clone();
    let decision = match path.as_str() {
        "/allow" => json!({"allowed": true}),
        "/deny" => json!({"allowed": false, "status": {
            "code": 409, "reason": "Conflict", "message": "denied by the test",
            "details": {"causes": [{"field": "spec", "message": "not today", "reason": "FieldValueInvalid"}]},
        }}),
        "/refuse" => json!({"allowed": false}),
        "/warn" => json!({"allowed": true, "warnings": ["be careful", "it is \"hot\""]}),
        "/mutate" => patched(&json!([
            {"op": "add", "path": "/metadata/annotations", "value": {"mutated": "yes"}},
        ])),
        "/mutate-badly" => patched(&json!([{"op": "remove", "path": "/absent/field"}])),
        "/tell" => json!({"allowed": false, "status": {"message": told(&review["request"])}}),
        "/slow" => {
            tokio::time::sleep(Duration::from_secs(5)).await;
            json!({"allowed": true})
        }
        "/stranger" => json!({"allowed": true, "uid": "another"}),
        "/garbage" => return Ok(reply(StatusCode::OK, "this is no review")),
        _ => return Ok(reply(StatusCode::INTERNAL_SERVER_ERROR, "broken on purpose")),
    };
    let mut response = json!({"uid": uid});
    if let (Some(response), Value::Object(decision)) = (response.as_object_mut(), decision) {
        response.extend(decision);
    }
    let review = json!({
        "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response,
    });
    Ok(reply(StatusCode::OK, &review.to_string()))
}

fn patched(patch: &Value) -> Value {
    let patch = BASE64.encode(patch.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

/// The question without what differs from run to run.
fn told(request: &Value) -> String {
    let mut told = request.clone();
    let mut forget = |place: &str, keys: &[&str]| {
        if let Some(map) = told.pointer_mut(place).and_then(Value::as_object_mut) {
            map.retain(|key, _| !keys.contains(&key.as_str()));
        }
    };
    forget("", &["uid"]);
    forget("/userInfo", &["extra"]);
    for object in ["/object/metadata", "/oldObject/metadata"] {
        forget(object, &["managedFields", "resourceVersion", "creationTimestamp", "uid"]);
    }
    told.to_string()
}

fn reply(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert("Content-Type", http::HeaderValue::from_static("application/json"));
    response
}
