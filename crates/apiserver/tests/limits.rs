//! What a client cannot exceed, and what it is told when the past is forgotten. The server runs
//! in this process, on virtual time and without a socket.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by panicking")]

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use fleetwright_apiserver::{
    Limits, Server,
    auth::authn::signing::SigningKey,
    embedded::{Embedded, Running, Settings, StoreLocation},
    internal::InternalClient,
    service::{KnownUser, ResponseBody, handle},
    user::{MASTERS, UserInfo},
};
use fleetwright_clock::{Clock, Random};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

async fn start(limits: Limits) -> Running {
    let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
    let settings = Settings {
        clock: clock.clone(),
        random: Random::seeded(1),
        limits,
        tokens: String::new(),
        service_account_key: SigningKey::generate().unwrap().pkcs8().to_vec(),
        authority: String::new(),
        controllers: Box::new(|_| false),
    };
    let embedded = Embedded::open(StoreLocation::Memory, &clock).unwrap();
    embedded.start(settings).await.unwrap()
}

async fn send(server: &Server, method: &str, uri: &str, body: Vec<u8>) -> Response<ResponseBody> {
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header("Content-Type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let user = Arc::new(UserInfo::new("test", &[MASTERS]));
    request.extensions_mut().insert(KnownUser(user));
    handle(server.clone(), request).await
}

async fn text(response: Response<ResponseBody>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn status(response: Response<ResponseBody>) -> Value {
    serde_json::from_str(&text(response).await).unwrap()
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_refused() {
    let running = start(Limits::default()).await;
    let most = Limits::default().body;
    let answer = send(running.server(), "POST", CONFIG_MAPS, vec![b' '; most + 1]).await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(status(answer).await["message"], "Request entity too large: limit is 3145728");
    let answer = send(running.server(), "POST", CONFIG_MAPS, vec![b' '; most]).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_large_is_not_stored() {
    let running = start(Limits { object: 20_000, ..Limits::default() }).await;
    let server = running.server();
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let revision = |name: &str, size: usize| json!({"metadata": {"name": name}, "revision": 1, "data": {"text": "a".repeat(size)}});
    let body = |value: Value| value.to_string().into_bytes();
    let answer = send(server, "POST", revisions, body(revision("a", 20_000))).await;
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(status(answer).await["message"], "etcdserver: request is too large");
    let answer = send(server, "POST", revisions, body(revision("a", 10_000))).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    // It cannot grow either, and stays as it was.
    let mut large = revision("a", 10_000);
    large["metadata"]["annotations"] = json!({"text": "a".repeat(10_000)});
    let one = format!("{revisions}/a");
    let answer = send(server, "PUT", &one, body(large)).await;
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let answer = status(send(server, "GET", &one, Vec::new()).await).await;
    assert_eq!(answer["metadata"]["annotations"], Value::Null);
    // What is only tried is not stored.
    let trial = format!("{revisions}?dryRun=All");
    let answer = send(server, "POST", &trial, body(revision("b", 20_000))).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn a_url_that_is_too_long_is_refused() {
    let running = start(Limits { url: 100, ..Limits::default() }).await;
    let long = format!("{CONFIG_MAPS}?labelSelector={}", "a".repeat(100));
    let answer = send(running.server(), "GET", &long, Vec::new()).await;
    assert_eq!(answer.status(), StatusCode::URI_TOO_LONG);
    let answer = send(running.server(), "GET", CONFIG_MAPS, Vec::new()).await;
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_watches_are_open_at_once() {
    let running = start(Limits { watches: 1, ..Limits::default() }).await;
    let watch = format!("{CONFIG_MAPS}?watch=true");
    let first = send(running.server(), "GET", &watch, Vec::new()).await;
    assert_eq!(first.status(), StatusCode::OK);
    let second = send(running.server(), "GET", &watch, Vec::new()).await;
    assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(second.headers()["retry-after"], "1");
    drop(first);
    let third = send(running.server(), "GET", &watch, Vec::new()).await;
    assert_eq!(third.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn deep_nesting_is_refused_and_does_no_harm() {
    let running = start(Limits::default()).await;
    let deep = format!("{{\"data\":{}", "{\"a\":".repeat(100_000));
    let answer = send(running.server(), "POST", CONFIG_MAPS, deep.into_bytes()).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let answer = send(running.server(), "GET", CONFIG_MAPS, Vec::new()).await;
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_is_told_with_a_way_on() {
    let running = start(Limits::default()).await;
    let server = running.server();
    let client = InternalClient::new(server, "test");
    for name in ["a", "b", "c"] {
        client.post(CONFIG_MAPS, &config_map(name)).await.unwrap();
    }
    let page = client.get(&format!("{CONFIG_MAPS}?limit=1")).await.unwrap();
    let token = page["metadata"]["continue"].as_str().unwrap().to_owned();
    let version = page["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    client.post(CONFIG_MAPS, &config_map("d")).await.unwrap();
    server.storage().compact(server.storage().revision()).await.unwrap();

    // The list cannot go on as it began, but it can go on.
    let answer =
        send(server, "GET", &format!("{CONFIG_MAPS}?limit=1&continue={token}"), vec![]).await;
    assert_eq!(answer.status(), StatusCode::GONE);
    let refusal = status(answer).await;
    assert_eq!(refusal["reason"], "Expired");
    let fresh = refusal["metadata"]["continue"].as_str().unwrap();
    let rest = client.get(&format!("{CONFIG_MAPS}?continue={fresh}")).await.unwrap();
    let names: Vec<_> =
        rest["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["b", "c", "d"]);

    // A list at an old revision has no way on.
    let exact = format!("{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(send(server, "GET", &exact, vec![]).await.status(), StatusCode::GONE);

    // A watch is told in its stream.
    let watch = format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}");
    let stream = text(send(server, "GET", &watch, vec![]).await).await;
    let event: Value = serde_json::from_str(stream.trim()).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_never_comes_is_waited_for_in_vain() {
    let running = start(Limits::default()).await;
    let began = tokio::time::Instant::now();
    let future = format!("{CONFIG_MAPS}?resourceVersion=1000000&resourceVersionMatch=NotOlderThan");
    let answer = send(running.server(), "GET", &future, vec![]).await;
    assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(began.elapsed().as_secs(), Duration::from_secs(3).as_secs());
    assert_eq!(status(answer).await["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}
