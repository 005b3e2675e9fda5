//! The service as the API server calls it: in this process and over TLS.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use fleetwright_apiserver::admission::WebhookTransport;
use fleetwright_apiserver::admission::transport::{Https, InProcess, Target};
use fleetwright_apiserver::tls::Authority;
use fleetwright_clock::Clock;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    Certificate, Edit, Endpoint, FailurePolicy, FieldError, Operation, Registry, Request, Rule,
    RuleFuture, Service, Stage, Verdict, Webhook, https,
};

/// Wants a colour, and gives a size.
struct Colour;

impl Rule for Colour {
    fn review<'a>(&'a self, request: &'a Request) -> RuleFuture<'a> {
        Box::pin(async move {
            let object = request.object.clone().ok_or("there is no object")?;
            let mut verdict = Verdict::allowed();
            if object["colour"].is_null() {
                verdict.errors.push(FieldError::required("colour", "give it one"));
            }
            verdict.warnings.push(format!("{} of {}", request.kind, request.namespace));
            let mut edit = Edit::new(object);
            edit.set(&["size"], json!(1));
            verdict.edit = Some(edit);
            Ok(verdict)
        })
    }
}

fn webhook(path: &'static str, stage: Stage) -> Webhook {
    Webhook {
        name: "colour.fleetwright.dev",
        path,
        stage,
        operations: &[Operation::Create, Operation::Update],
        group: "fleetwright.dev",
        version: "v1",
        resources: &["things"],
        failure_policy: FailurePolicy::Ignore,
        rule: Arc::new(Colour),
    }
}

fn service() -> Service {
    Service::new(Registry::new([
        webhook("/mutate", Stage::Mutate),
        webhook("/validate", Stage::Validate),
    ]))
}

fn review(object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1", "operation": "CREATE", "namespace": "ns", "name": "n",
            "kind": {"group": "fleetwright.dev", "version": "v1", "kind": "Thing"},
            "object": object,
        },
    })
}

fn post(path: &str, body: String) -> http::Request<Bytes> {
    let mut request = http::Request::new(Bytes::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.parse().expect("a path");
    request
}

async fn ask(path: &str, object: &Value) -> Value {
    let response = service().answer(post(path, review(object).to_string())).await;
    assert_eq!(response.status(), StatusCode::OK);
    let answer: Value = serde_json::from_slice(response.body()).expect("JSON");
    answer["response"].clone()
}

#[tokio::test]
async fn a_refusal_has_the_words_and_no_patch() {
    let wanted = json!({
        "uid": "u1", "allowed": false, "warnings": ["Thing of ns"],
        "status": {
            "status": "Failure", "code": 403, "reason": "Forbidden",
            "message": "colour: Required value: give it one",
        },
    });
    assert_eq!(ask("/mutate", &json!({})).await, wanted);
    assert_eq!(ask("/validate", &json!({})).await, wanted);
}

#[tokio::test]
async fn only_a_mutating_webhook_changes_the_object() {
    let answer = ask("/mutate", &json!({"colour": "red"})).await;
    assert_eq!(answer["allowed"], true);
    let patch = STANDARD.decode(answer["patch"].as_str().expect("a patch")).expect("base64");
    let patch: Value = serde_json::from_slice(&patch).expect("JSON");
    assert_eq!(patch, json!([{"op": "add", "path": "/size", "value": 1}]));
    let answer = ask("/validate", &json!({"colour": "red"})).await;
    assert_eq!((&answer["allowed"], answer.get("patch")), (&json!(true), None));
}

#[tokio::test]
async fn what_is_no_review_is_refused_without_harm() {
    let good = review(&json!({})).to_string();
    let rows = [
        (post("/elsewhere", good.clone()), StatusCode::NOT_FOUND),
        (post("/validate", "{".to_owned()), StatusCode::BAD_REQUEST),
        (post("/validate", "{}".to_owned()), StatusCode::BAD_REQUEST),
        (post("/validate", good.replace("u1", "")), StatusCode::BAD_REQUEST),
        (post("/validate", good.replace("CREATE", "PAINT")), StatusCode::BAD_REQUEST),
        (
            post("/validate", good.replace("\"object\"", "\"other\"")),
            StatusCode::INTERNAL_SERVER_ERROR,
        ),
    ];
    for (request, wanted) in rows {
        let shown = String::from_utf8_lossy(request.body()).into_owned();
        assert_eq!(service().answer(request).await.status(), wanted, "{shown}");
    }
}

#[test]
fn configurations_name_path_policy_and_operations() {
    let registry = Registry::new([webhook("/validate", Stage::Validate)]);
    let endpoint =
        Endpoint::Service { namespace: "ns".to_owned(), name: "hooks".to_owned(), port: 443 };
    let validating = json!(registry.validating("machine-api", &endpoint, b"ca"));
    assert_eq!(
        validating["webhooks"],
        json!([{
            "name": "colour.fleetwright.dev",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "caBundle": "Y2E=",
                "service": {"namespace": "ns", "name": "hooks", "path": "/validate", "port": 443},
            },
            "failurePolicy": "Ignore", "matchPolicy": "Equivalent", "sideEffects": "None",
            "rules": [{
                "apiGroups": ["fleetwright.dev"], "apiVersions": ["v1"], "resources": ["things"],
                "operations": ["CREATE", "UPDATE"], "scope": "*",
            }],
        }])
    );
    assert_eq!(json!(registry.mutating("machine-api", &endpoint, b"ca"))["webhooks"], json!([]));
    let url = registry.validating("machine-api", &Endpoint::Url("https://h:1/".to_owned()), b"");
    assert_eq!(json!(url)["webhooks"][0]["clientConfig"], json!({"url": "https://h:1/validate"}));
}

fn target(url: String, ca: &str) -> Target {
    Target::Url { url, ca_bundle: Arc::from(ca.as_bytes()) }
}

#[tokio::test]
async fn it_answers_in_process() {
    let transport = InProcess::default();
    transport.register_service("ns", "hooks", 443, service());
    let target = Target::Service {
        namespace: "ns".to_owned(),
        name: "hooks".to_owned(),
        port: 443,
        path: "/validate".to_owned(),
        ca_bundle: Arc::from([]),
    };
    let request = post("https://hooks.ns.svc:443/validate", review(&json!({})).to_string());
    let response = transport.call(&target, request).await.expect("an answer");
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn it_answers_over_tls_and_its_certificate_can_be_replaced() {
    let clock = Clock::system();
    let authorities = [(); 2].map(|()| Authority::generate(&clock).expect("an authority"));
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let identities = authorities
        .each_ref()
        .map(|authority| authority.server(&["localhost"], &[address]).expect("a certificate"));
    let shown = Certificate::new(&identities[0].certificate, &identities[0].key).expect("usable");

    let listener = TcpListener::bind((address, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let stop = CancellationToken::new();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(https::serve(listener, shown.tls().expect("TLS"), service(), stop.clone()));

    let url = format!("https://127.0.0.1:{port}/validate");
    let ask = async |authority: &Authority| {
        let target = target(url.clone(), &authority.identity.certificate);
        let request = post(&url, review(&json!({"colour": "red"})).to_string());
        Https.call(&target, request).await.map(|response| response.status())
    };
    assert_eq!(ask(&authorities[0]).await, Ok(StatusCode::OK));
    assert!(ask(&authorities[1]).await.is_err());

    shown.replace(&identities[1].certificate, &identities[1].key).expect("usable");
    assert_eq!(ask(&authorities[1]).await, Ok(StatusCode::OK));
    assert!(shown.replace("nonsense", "nonsense").is_err());
    assert_eq!(ask(&authorities[1]).await, Ok(StatusCode::OK));

    stop.cancel();
    while tasks.join_next().await.is_some() {}
}
