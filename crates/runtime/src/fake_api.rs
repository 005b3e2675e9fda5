//! A small API server for the tests of this crate: one map of objects, revisions, watches, and
//! faults on demand. In process, without sockets.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

type Answer = Response<UnsyncBoxBody<Bytes, std::io::Error>>;

/// What goes wrong with a request.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Refused with this status before anything happens.
    Refuse(u16),
    /// Nothing happens and no answer comes.
    Hang,
    /// It happens, but no answer comes.
    LoseAnswer,
    /// A watch that ends at once.
    EmptyWatch,
}

/// Requests that a fault applies to, and how many of them.
struct Plan {
    method: Method,
    query_contains: &'static str,
    left: usize,
    fault: Fault,
}

#[derive(Default)]
struct World {
    revision: u64,
    /// Watches from before this revision are refused.
    compacted: u64,
    /// By path of the object.
    objects: BTreeMap<String, Value>,
    /// Revision, collection and event.
    log: Vec<(u64, String, Value)>,
    watches: Vec<(String, mpsc::UnboundedSender<std::io::Result<Bytes>>)>,
    faults: Vec<Plan>,
    requests: Vec<String>,
}

#[derive(Clone, Default)]
pub(crate) struct FakeApi(Arc<Mutex<World>>);

impl FakeApi {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn client(&self) -> kube::Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.serve(request).await) }
        });
        kube::Client::new(service, "default")
    }

    /// Creates or updates an object, and tells the watches.
    pub(crate) fn put(&self, collection: &str, object: Value) -> Value {
        self.0.lock().put(collection, object)
    }

    /// Deletes an object, and tells the watches.
    pub(crate) fn delete(&self, collection: &str, name: &str) {
        let mut world = self.0.lock();
        let mut object = world.objects.remove(&format!("{collection}/{name}")).unwrap();
        world.revision += 1;
        object["metadata"]["resourceVersion"] = json!(world.revision.to_string());
        world.tell(collection, "DELETED", &object);
    }

    /// Removes an object without a word to anybody, as if its event had been compacted.
    pub(crate) fn vanish(&self, collection: &str, name: &str) {
        let mut world = self.0.lock();
        world.objects.remove(&format!("{collection}/{name}")).unwrap();
        world.revision += 1;
    }

    /// Says `event` to all watches, whatever the store holds.
    pub(crate) fn say(&self, event: &Value) {
        self.0.lock().watches.retain(|(_, watch)| watch.send(Ok(line(event))).is_ok());
    }

    /// Ends all watches in good order.
    pub(crate) fn drop_watches(&self) {
        self.0.lock().watches.clear();
    }

    /// Breaks the connection of all watches.
    pub(crate) fn break_watches(&self) {
        for (_, watch) in self.0.lock().watches.drain(..) {
            let _ = watch.send(Err(std::io::Error::other("connection reset")));
        }
    }

    /// Forgets history: watches from before now are refused with an error event, and running
    /// watches end with one.
    pub(crate) fn compact(&self) {
        let mut world = self.0.lock();
        world.compacted = world.revision;
        world.log.clear();
        for (_, watch) in world.watches.drain(..) {
            let _ = watch.send(Ok(line(&expired())));
        }
    }

    /// Has the next `count` requests with this method, and with this in their query, go wrong.
    pub(crate) fn fail(
        &self,
        count: usize,
        method: Method,
        query_contains: &'static str,
        fault: Fault,
    ) {
        self.0.lock().faults.push(Plan { method, query_contains, left: count, fault });
    }

    /// Method and address of every request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.0.lock().requests.clone()
    }

    pub(crate) fn object(&self, path: &str) -> Option<Value> {
        self.0.lock().objects.get(path).cloned()
    }

    /// The objects below a path, sorted.
    pub(crate) fn objects(&self, below: &str) -> Vec<Value> {
        let world = self.0.lock();
        let found = world.objects.iter().filter(|(path, _)| path.starts_with(below));
        found.map(|(_, object)| object.clone()).collect()
    }

    async fn serve(&self, request: Request<Body>) -> Answer {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let fault = self.0.lock().note(&parts);
        match fault {
            Some(Fault::Refuse(code)) => status(code, "Refused", "refused by the test"),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::LoseAnswer) => {
                self.0.lock().act(&parts, &body);
                std::future::pending().await
            }
            Some(Fault::EmptyWatch) => answer(200, &Value::Null, true),
            None => self.0.lock().act(&parts, &body),
        }
    }
}

impl World {
    fn note(&mut self, parts: &Parts) -> Option<Fault> {
        self.requests.push(format!("{} {}", parts.method, parts.uri));
        let query = parts.uri.query().unwrap_or_default();
        let plan = self.faults.iter_mut().find(|plan| {
            plan.left > 0 && plan.method == parts.method && query.contains(plan.query_contains)
        })?;
        plan.left -= 1;
        Some(plan.fault.clone())
    }

    fn act(&mut self, parts: &Parts, body: &Bytes) -> Answer {
        let path = parts.uri.path().to_owned();
        let query = parts.uri.query().unwrap_or_default();
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        match parts.method {
            Method::GET if query.contains("watch=true") => self.watch(&path, query),
            // The last part of a collection is a plural without an object of that path.
            Method::GET if self.is_collection(&path) => self.list(&path, query),
            Method::GET => match self.objects.get(&path) {
                Some(object) => answer(200, object, false),
                None => status(404, "NotFound", "not found"),
            },
            Method::POST => {
                let name = sent["metadata"]["name"].as_str().unwrap().to_owned();
                if self.objects.contains_key(&format!("{path}/{name}")) {
                    return status(409, "AlreadyExists", "already exists");
                }
                answer(201, &self.put(&path, sent), false)
            }
            Method::PUT | Method::PATCH => self.update(&path, sent, parts.method == Method::PATCH),
            _ => status(405, "MethodNotAllowed", "not allowed"),
        }
    }

    fn is_collection(&self, path: &str) -> bool {
        !self.objects.contains_key(path) && !path.contains("/leases/") && !path.contains("/events/")
    }

    fn update(&mut self, path: &str, sent: Value, patch: bool) -> Answer {
        let Some(known) = self.objects.get(path).cloned() else {
            return status(404, "NotFound", "not found");
        };
        let version = sent["metadata"]["resourceVersion"].as_str();
        if version.is_some_and(|version| known["metadata"]["resourceVersion"] != version) {
            return status(409, "Conflict", "the object has been modified");
        }
        let mut object = sent;
        if patch {
            let mut merged = known;
            for (key, value) in object.as_object().unwrap() {
                merged[key] = value.clone();
            }
            object = merged;
        }
        let collection = path.rsplit_once('/').unwrap().0.to_owned();
        answer(200, &self.put(&collection, object), false)
    }

    fn put(&mut self, collection: &str, mut object: Value) -> Value {
        self.revision += 1;
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let path = format!("{collection}/{name}");
        let kind = if self.objects.contains_key(&path) { "MODIFIED" } else { "ADDED" };
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        if object["metadata"]["uid"].is_null() {
            let known = self.objects.get(&path).map(|known| known["metadata"]["uid"].clone());
            object["metadata"]["uid"] =
                known.unwrap_or_else(|| json!(format!("uid-{}", self.revision)));
        }
        self.objects.insert(path, object.clone());
        self.tell(collection, kind, &object);
        object
    }

    fn tell(&mut self, collection: &str, kind: &str, object: &Value) {
        let event = json!({"type": kind, "object": object});
        self.watches.retain(|(watched, watch)| {
            !collection.starts_with(watched.as_str()) || watch.send(Ok(line(&event))).is_ok()
        });
        self.log.push((self.revision, collection.to_owned(), event));
    }

    /// Pages of two objects when a limit is asked for.
    fn list(&mut self, path: &str, query: &str) -> Answer {
        let below = format!("{path}/");
        let found = self.objects.iter().filter(|(known, _)| known.starts_with(&below));
        let all: Vec<Value> = found.map(|(_, object)| object.clone()).collect();
        let start = parameter(query, "continue").and_then(|token| token.parse().ok()).unwrap_or(0);
        let end = if query.contains("limit=") { all.len().min(start + 2) } else { all.len() };
        let more = if end < all.len() { json!(end.to_string()) } else { Value::Null };
        let list = json!({
            "kind": "List", "apiVersion": "v1",
            "metadata": {"resourceVersion": self.revision.to_string(), "continue": more},
            "items": all[start..end],
        });
        answer(200, &list, false)
    }

    fn watch(&mut self, path: &str, query: &str) -> Answer {
        let from: u64 = parameter(query, "resourceVersion").unwrap().parse().unwrap();
        let (sender, receiver) = mpsc::unbounded_channel();
        if from < self.compacted {
            let _ = sender.send(Ok(line(&expired())));
        } else {
            for (revision, collection, event) in &self.log {
                if *revision > from && collection.starts_with(path) {
                    let _ = sender.send(Ok(line(event)));
                }
            }
            self.watches.push((path.to_owned(), sender));
        }
        let frames = futures::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|item| (item, receiver))
        });
        let body = StreamBody::new(frames.map(|item| item.map(Frame::data)));
        Response::new(UnsyncBoxBody::new(body))
    }
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn expired() -> Value {
    json!({"type": "ERROR", "object": {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410,
        "reason": "Expired", "message": "too old resource version",
    }})
}

fn line(event: &Value) -> Bytes {
    Bytes::from(format!("{event}\n"))
}

fn status(code: u16, reason: &str, message: &str) -> Answer {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {},
        "code": code, "reason": reason, "message": message,
    });
    answer(code, &body, false)
}

fn answer(code: u16, body: &Value, empty: bool) -> Answer {
    let bytes = if empty { Bytes::new() } else { Bytes::from(body.to_string()) };
    let full = Full::new(bytes).map_err(|never: Infallible| match never {});
    let mut response = Response::new(UnsyncBoxBody::new(full));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}
