//! Webhooks as a whole: in this process on virtual time, and over HTTPS.

use std::{convert::Infallible, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use fleetwright_clock::Random;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    Admission, Attributes, Equivalent, GroupVersionResource, Hooks, InProcess,
    configuration::{MUTATING, VALIDATING},
    transport::Https,
};
use crate::{
    auth::{
        ObjectSource,
        source::{NAMESPACES, memory::MemorySource},
    },
    gvk::GroupVersionKind,
    request::Operation,
    status::ApiError,
    user::UserInfo,
};

/// A cluster with webhooks in this process, that remembers what they were asked.
struct Cluster {
    source: Arc<MemorySource>,
    transport: Arc<InProcess>,
    admission: Admission,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Cluster {
    fn new() -> Self {
        let source = Arc::new(MemorySource::default());
        source.put(NAMESPACES, json!({"metadata": {"name": "ns", "labels": {"env": "prod"}}}));
        let transport = Arc::new(InProcess::default());
        let admission = Admission::new(
            Arc::clone(&source) as Arc<dyn ObjectSource>,
            Arc::clone(&transport) as _,
            Random::seeded(1),
        );
        Self { source, transport, admission, asked: Arc::default() }
    }

    /// Adds a webhook that answers with `answer` after `delay`.
    #[expect(clippy::needless_pass_by_value, reason = "settings read best as literals")]
    fn webhook(
        &self,
        resource: &str,
        name: &str,
        more: Value,
        delay: Duration,
        answer: impl Fn(&Value) -> Value + Clone + Send + Sync + 'static,
    ) {
        let mut webhook = json!({
            "name": name,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "hooks", "name": name, "path": "/x"}},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*"]}],
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            webhook[key] = value.clone();
        }
        self.source.put(resource, json!({"metadata": {"name": name}, "webhooks": [webhook]}));
        let asked = Arc::clone(&self.asked);
        let called = name.to_owned();
        let service = tower::service_fn(move |request: Request<Bytes>| {
            let (answer, asked, called) = (answer.clone(), Arc::clone(&asked), called.clone());
            async move {
                let review: Value = serde_json::from_slice(request.body()).unwrap();
                asked.lock().push((called, review.clone()));
                tokio::time::sleep(delay).await;
                let mut response = answer(&review["request"]);
                response["uid"] = review["request"]["uid"].clone();
                let body = json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response});
                Ok::<_, Infallible>(Response::new(Bytes::from(body.to_string())))
            }
        });
        self.transport.register_service("hooks", name, 443, service);
    }

    fn names(&self) -> Vec<String> {
        self.asked.lock().iter().map(|(name, _)| name.clone()).collect()
    }

    async fn create(&self, object: &mut Value, warnings: &mut Vec<String>) -> Result<(), ApiError> {
        let fixture = Fixture::new();
        let attributes = fixture.attributes(Operation::Create);
        let hooks = |_: &mut Value| Ok(());
        self.admission.mutate(&attributes, Some(object), &hooks, warnings).await?;
        self.admission.validate(&attributes, Some(object), &hooks, warnings).await
    }
}

struct Fixture {
    user: UserInfo,
    kind: GroupVersionKind,
    resource: GroupVersionResource,
    options: Value,
}

impl Fixture {
    fn new() -> Self {
        Self {
            user: UserInfo::new("admin", &["system:masters"]),
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            resource: GroupVersionResource::new("", "v1", "configmaps"),
            options: json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}),
        }
    }

    fn attributes(&self, operation: Operation) -> Attributes<'_> {
        Attributes {
            user: &self.user,
            operation,
            kind: &self.kind,
            resource: &self.resource,
            subresource: "",
            name: "",
            namespace: "ns",
            old_object: None,
            options: &self.options,
            dry_run: false,
        }
    }
}

fn config_map() -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x", "namespace": "ns"}})
}

fn allow(_: &Value) -> Value {
    json!({"allowed": true})
}

fn patch(operations: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64.encode(operations.to_string())})
}

const NOW: Duration = Duration::ZERO;

#[tokio::test(start_paused = true)]
async fn webhooks_are_sent_what_upstream_sends() {
    let cluster = Cluster::new();
    cluster.webhook(VALIDATING, "h", json!({}), NOW, allow);
    // What the path tells may be missing in the object.
    let mut bare = json!({"metadata": {"name": "x", "namespace": "ns"}});
    cluster.create(&mut bare, &mut Vec::new()).await.unwrap();
    let (_, mut review) = cluster.asked.lock()[0].clone();
    let uid = review["request"]["uid"].take();
    assert_eq!(uid.as_str().map(str::len), Some(36));
    assert_eq!(
        review,
        json!({
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": null,
                "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                "resource": {"group": "", "version": "v1", "resource": "configmaps"},
                "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
                "name": "x",
                "namespace": "ns",
                "operation": "CREATE",
                "userInfo": {"username": "admin", "groups": ["system:masters"]},
                "object": config_map(),
                "oldObject": null,
                "dryRun": false,
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            },
        })
    );
}

#[tokio::test(start_paused = true)]
async fn objects_are_changed_and_completed() {
    let cluster = Cluster::new();
    cluster.webhook(MUTATING, "h", json!({}), NOW, |_| {
        patch(&json!([{"op": "add", "path": "/data", "value": {"a": "b"}}]))
    });
    let fixture = Fixture::new();
    let hooks = |object: &mut Value| {
        object["normal"] = true.into();
        Ok(())
    };
    let mut object = config_map();
    let attributes = fixture.attributes(Operation::Create);
    cluster
        .admission
        .mutate(&attributes, Some(&mut object), &hooks, &mut Vec::new())
        .await
        .unwrap();
    assert_eq!(object["data"], json!({"a": "b"}));
    assert_eq!(object["normal"], true);

    let refusing = |_: &mut Value| Err("json: cannot unmarshal".to_owned());
    let result =
        cluster.admission.mutate(&attributes, Some(&mut object), &refusing, &mut Vec::new()).await;
    assert_eq!(result.unwrap_err().message(), "Internal error occurred: json: cannot unmarshal");

    let deletion = fixture.attributes(Operation::Delete);
    let result = cluster.admission.mutate(&deletion, None, &hooks, &mut Vec::new()).await;
    assert_eq!(
        result.unwrap_err().message(),
        "Internal error occurred: admission webhook \"h\" attempted to modify the object, which is not supported for this operation"
    );
}

#[tokio::test(start_paused = true)]
async fn patches_that_fail_read_as_upstream() {
    let calling = "failed calling webhook \"h\": ";
    let cases = [
        ("JSONPatch", "{}", format!("{calling}received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch")),
        ("Foo", r#"[{"op":"add","path":"/data","value":{}}]"#, format!("{calling}unsupported patch type \"Foo\"")),
        ("JSONPatch", r#"[{"op":"replace","path":"/a/b/c","value":1}]"#, "replace operation does not apply: doc is missing path: /a/b/c: missing value".to_owned()),
        ("JSONPatch", r#"[{"op":"remove","path":"/nope"}]"#, "error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value".to_owned()),
        ("JSONPatch", r#"[{"op":"test","path":"/kind","value":"x"}]"#, "testing value /kind failed: test failed".to_owned()),
    ];
    for (kind, patch, expected) in cases {
        let cluster = Cluster::new();
        cluster.webhook(
            MUTATING,
            "h",
            json!({}),
            NOW,
            move |_| json!({"allowed": true, "patchType": kind, "patch": BASE64.encode(patch)}),
        );
        let error = cluster.create(&mut config_map(), &mut Vec::new()).await.unwrap_err();
        assert_eq!(error.message(), format!("Internal error occurred: {expected}"));
    }
    let cluster = Cluster::new();
    cluster.webhook(MUTATING, "h", json!({}), NOW, |_| patch(&json!([])));
    let mut object = config_map();
    cluster.create(&mut object, &mut Vec::new()).await.unwrap();
    assert_eq!(object, config_map());
}

#[tokio::test(start_paused = true)]
async fn webhooks_see_changes_of_later_ones_if_they_want() {
    let cluster = Cluster::new();
    let add = |key: &'static str| {
        move |request: &Value| {
            if request["object"]["metadata"]["labels"].get(key).is_some() {
                return json!({"allowed": true});
            }
            let labels = if request["object"]["metadata"].get("labels").is_some() {
                json!([{"op": "add", "path": format!("/metadata/labels/{key}"), "value": "1"}])
            } else {
                json!([{"op": "add", "path": "/metadata/labels", "value": {key: "1"}}])
            };
            patch(&labels)
        }
    };
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    cluster.webhook(MUTATING, "a", again.clone(), NOW, add("a"));
    cluster.webhook(MUTATING, "b", json!({}), NOW, add("b"));
    cluster.webhook(MUTATING, "c", again, NOW, allow);
    let mut object = config_map();
    cluster.create(&mut object, &mut Vec::new()).await.unwrap();
    assert_eq!(object["metadata"]["labels"], json!({"a": "1", "b": "1"}));
    // Only the first wanted to see what came after it, and something did.
    assert_eq!(cluster.names(), ["a", "b", "c", "a"]);
}

#[tokio::test(start_paused = true)]
async fn selectors_and_conditions_choose_webhooks() {
    let cases = [
        (json!({}), true),
        (json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}), true),
        (json!({"namespaceSelector": {"matchLabels": {"env": "test"}}}), false),
        (json!({"objectSelector": {"matchLabels": {"app": "x"}}}), false),
        (
            json!({"objectSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}),
            true,
        ),
        (
            json!({"matchConditions": [{"name": "c", "expression": "request.userInfo.username == 'admin'"}]}),
            true,
        ),
        (
            json!({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'y'"}]}),
            false,
        ),
        (
            json!({"failurePolicy": "Ignore", "matchConditions": [{"name": "c", "expression": "object.data.x == '1'"}]}),
            false,
        ),
        (
            json!({"rules": [{"operations": ["UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]}),
            false,
        ),
    ];
    for (more, expected) in cases {
        let cluster = Cluster::new();
        cluster.webhook(VALIDATING, "h", more.clone(), NOW, allow);
        cluster.create(&mut config_map(), &mut Vec::new()).await.unwrap();
        assert_eq!(!cluster.names().is_empty(), expected, "{more}");
    }
    let cluster = Cluster::new();
    let condition =
        json!({"matchConditions": [{"name": "c", "expression": "object.data.x == \"1\""}]});
    cluster.webhook(VALIDATING, "h", condition, NOW, allow);
    let error = cluster.create(&mut config_map(), &mut Vec::new()).await.unwrap_err();
    assert_eq!(
        (error.code().as_u16(), error.message()),
        (
            403,
            "configmaps \"x\" is forbidden: expression 'object.data.x == \"1\"' resulted in error: no such key: data"
        )
    );
    cluster.source.delete(NAMESPACES, "", "ns");
    cluster.webhook(
        VALIDATING,
        "h",
        json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}),
        NOW,
        allow,
    );
    let error = cluster.create(&mut config_map(), &mut Vec::new()).await.unwrap_err();
    assert_eq!(error.message(), "namespaces \"ns\" not found");
}

#[tokio::test(start_paused = true)]
async fn configurations_themselves_are_exempt() {
    let cluster = Cluster::new();
    let all = json!({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]});
    cluster.webhook(VALIDATING, "h", all, NOW, |_| json!({"allowed": false}));
    let mut fixture = Fixture::new();
    fixture.kind = GroupVersionKind::new(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
    );
    let hooks = |_: &mut Value| Ok(());
    let attributes = fixture.attributes(Operation::Update);
    let object = json!({});
    assert_eq!(
        cluster.admission.validate(&attributes, Some(&object), &hooks, &mut Vec::new()).await,
        Ok(())
    );
}

#[tokio::test(start_paused = true)]
async fn slow_webhooks_time_out() {
    let cluster = Cluster::new();
    let slow = Duration::from_hours(1);
    cluster.webhook(VALIDATING, "h", json!({"timeoutSeconds": 1}), slow, allow);
    let error = cluster.create(&mut config_map(), &mut Vec::new()).await.unwrap_err();
    assert_eq!(
        (error.code().as_u16(), error.message()),
        (
            500,
            "Internal error occurred: failed calling webhook \"h\": failed to call webhook: Post \"https://h.hooks.svc:443/x?timeout=1s\": context deadline exceeded"
        )
    );
    let ignored = json!({"timeoutSeconds": 1, "failurePolicy": "Ignore"});
    cluster.webhook(VALIDATING, "h", ignored, slow, allow);
    cluster.create(&mut config_map(), &mut Vec::new()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unknown_services_are_named() {
    let cluster = Cluster::new();
    let elsewhere = json!({"clientConfig": {"service": {"namespace": "ns", "name": "svc", "path": "/p"}}, "timeoutSeconds": 5});
    cluster.webhook(MUTATING, "h.example.com", elsewhere, NOW, allow);
    let error = cluster.create(&mut config_map(), &mut Vec::new()).await.unwrap_err();
    assert_eq!(
        error.message(),
        "Internal error occurred: failed calling webhook \"h.example.com\": failed to call webhook: Post \"https://svc.ns.svc:443/p?timeout=5s\": service \"svc\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn validating_webhooks_run_at_once_and_the_first_refusal_counts() {
    let cluster = Cluster::new();
    let deny = |message: &'static str| move |_: &Value| json!({"allowed": false, "warnings": [message], "status": {"message": message}});
    cluster.webhook(VALIDATING, "a", json!({}), Duration::from_secs(5), deny("late"));
    cluster.webhook(VALIDATING, "b", json!({}), Duration::from_secs(2), deny("early"));
    let started = tokio::time::Instant::now();
    let mut warnings = Vec::new();
    let error = cluster.create(&mut config_map(), &mut warnings).await.unwrap_err();
    assert_eq!(error.message(), "admission webhook \"b\" denied the request: early");
    assert_eq!(warnings, ["early", "late"]);
    assert_eq!(started.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn dry_runs_spare_webhooks_with_side_effects() {
    let fixture = Fixture::new();
    let dry = Attributes { dry_run: true, ..fixture.attributes(Operation::Create) };
    let hooks = |_: &mut Value| Ok(());
    for (effects, expected) in [
        ("None", Ok(())),
        ("NoneOnDryRun", Ok(())),
        ("Some", Err("admission webhook \"h\" does not support dry run".to_owned())),
    ] {
        let cluster = Cluster::new();
        let more = json!({"sideEffects": effects, "failurePolicy": "Ignore"});
        cluster.webhook(MUTATING, "h", more, NOW, allow);
        let mut object = config_map();
        let result =
            cluster.admission.mutate(&dry, Some(&mut object), &hooks, &mut Vec::new()).await;
        assert_eq!(result.map_err(|error| error.message().to_owned()), expected);
    }
}

/// A kind with two versions that differ in the name of a field.
struct TwoVersions;

impl Hooks for TwoVersions {
    fn normalize(&self, _: &mut Value) -> Result<(), String> {
        Ok(())
    }

    fn equivalents(&self) -> Vec<Equivalent> {
        ["v1", "v2"]
            .map(|version| Equivalent {
                resource: GroupVersionResource::new("", version, "configmaps"),
                kind: GroupVersionKind::new("", version, "ConfigMap"),
            })
            .to_vec()
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, String> {
        let mut object = object.clone();
        object["apiVersion"] = kind.group_version().to_string().into();
        Ok(object)
    }
}

#[tokio::test(start_paused = true)]
async fn other_versions_match_and_are_converted() {
    let rules = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["v2"], "resources": ["*"]}]);
    for (policy, expected) in [("Equivalent", 1), ("Exact", 0)] {
        let cluster = Cluster::new();
        cluster.webhook(MUTATING, "h", json!({"rules": rules, "matchPolicy": policy}), NOW, |_| {
            patch(&json!([{"op": "add", "path": "/data", "value": {}}]))
        });
        let fixture = Fixture::new();
        let mut object = config_map();
        let attributes = fixture.attributes(Operation::Create);
        cluster
            .admission
            .mutate(&attributes, Some(&mut object), &TwoVersions, &mut Vec::new())
            .await
            .unwrap();
        let asked = cluster.asked.lock();
        assert_eq!(asked.len(), expected);
        assert_eq!(object["apiVersion"], "v1");
        for (_, review) in asked.iter() {
            assert_eq!(review["request"]["object"]["apiVersion"], "v2");
            assert_eq!(review["request"]["resource"]["version"], "v2");
            assert_eq!(review["request"]["requestResource"]["version"], "v1");
            assert_eq!(object["data"], json!({}));
        }
    }
}

mod over_https {
    use http_body_util::{BodyExt as _, Full};
    use hyper::{body::Incoming, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::ServerConfig;
    use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio::{net::TcpListener, task::JoinSet};
    use tokio_rustls::TlsAcceptor;

    use super::*;

    struct Identity {
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        bundle: String,
    }

    fn key_of(key: &KeyPair) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(key.serialize_der()).into()
    }

    /// A certificate for 127.0.0.1, signed by an authority of its own.
    fn signed() -> Identity {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let authority_certificate = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::from_params(&authority, &authority_key);
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])
            .unwrap()
            .signed_by(&key, &issuer)
            .unwrap();
        Identity {
            chain: vec![certificate.der().clone()],
            key: key_of(&key),
            bundle: authority_certificate.pem(),
        }
    }

    /// A certificate that is its own authority, as `openssl req -x509` makes them.
    fn self_signed() -> Identity {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Identity {
            chain: vec![certificate.der().clone()],
            key: key_of(&key),
            bundle: certificate.pem(),
        }
    }

    async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
        assert_eq!(request.uri().path(), "/check");
        assert_eq!(request.uri().query(), Some("timeout=5s"));
        assert_eq!(request.headers()["user-agent"], "kube-apiserver-admission");
        assert_eq!(request.headers()["content-type"], "application/json");
        let review: Value =
            serde_json::from_slice(&request.into_body().collect().await?.to_bytes()).unwrap();
        let body = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": review["request"]["uid"], "allowed": false, "status": {"message": "heard you", "code": 403}},
        });
        Ok(Response::new(Full::new(Bytes::from(body.to_string()))))
    }

    /// Serves connections until it is dropped; returns its port.
    async fn serve(identity: &Identity) -> (u16, JoinSet<()>) {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(identity.chain.clone(), identity.key.clone_key())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer))
                    .await;
            }
        });
        (port, tasks)
    }

    async fn message(url: String, bundle: &str) -> String {
        let source = Arc::new(MemorySource::default());
        source.put(VALIDATING, json!({"metadata": {"name": "h"}, "webhooks": [{
            "name": "h",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
            "clientConfig": {"url": url, "caBundle": BASE64.encode(bundle)},
            "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}],
        }]}));
        let transport = Arc::new(InProcess::with_fallback(Arc::new(Https)));
        let admission = Admission::new(source as _, transport as _, Random::seeded(1));
        let fixture = Fixture::new();
        let attributes = fixture.attributes(Operation::Create);
        let hooks = |_: &mut Value| Ok(());
        let object = config_map();
        let result = admission.validate(&attributes, Some(&object), &hooks, &mut Vec::new()).await;
        result.unwrap_err().message().to_owned()
    }

    #[tokio::test]
    async fn webhooks_are_called_over_tls() {
        for identity in [signed(), self_signed()] {
            let (port, _server) = serve(&identity).await;
            let url = format!("https://127.0.0.1:{port}/check");
            assert_eq!(
                message(url, &identity.bundle).await,
                "admission webhook \"h\" denied the request: heard you"
            );
        }
    }

    #[tokio::test]
    async fn strangers_are_not_trusted() {
        let (port, _server) = serve(&signed()).await;
        let url = format!("https://127.0.0.1:{port}/check");
        for bundle in [signed().bundle.as_str(), ""] {
            assert_eq!(
                message(url.clone(), bundle).await,
                format!(
                    "Internal error occurred: failed calling webhook \"h\": failed to call webhook: Post \"{url}?timeout=5s\": tls: failed to verify certificate: x509: certificate signed by unknown authority"
                )
            );
        }
    }

    #[tokio::test]
    async fn closed_ports_are_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let url = format!("https://127.0.0.1:{port}/x");
        assert_eq!(
            message(url.clone(), "").await,
            format!(
                "Internal error occurred: failed calling webhook \"h\": failed to call webhook: Post \"{url}?timeout=5s\": dial tcp 127.0.0.1:{port}: connect: connection refused"
            )
        );
    }
}
