//! Requests to the Kubernetes API, counted on their way.

use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Method, Request, Response, Uri};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service};

/// Requests by what they do, such as `patch machines/status`.
pub(crate) type Counts = BTreeMap<String, u64>;

/// What tells users; nobody waits for it.
const EVENTS: &str = "create events";

/// What was answered, and when. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    counts: Counts,
    last: BTreeMap<String, Instant>,
}

impl Traffic {
    /// What was answered so far.
    pub(crate) fn counts(&self) -> Counts {
        self.0.lock().counts.clone()
    }

    /// How many of one kind were answered.
    pub(crate) fn count(&self, what: &str) -> u64 {
        self.0.lock().counts.get(what).copied().unwrap_or_default()
    }

    /// When the last of one kind was answered.
    pub(crate) fn last_of(&self, what: &str) -> Option<Instant> {
        self.0.lock().last.get(what).copied()
    }

    /// When the last write was answered, other than events.
    pub(crate) fn last_write(&self) -> Option<Instant> {
        let seen = self.0.lock();
        let writes = seen.last.iter().filter(|(what, _)| is_write(what) && *what != EVENTS);
        writes.map(|(_, at)| *at).max()
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        *self.0.lock() = Seen::default();
    }

    /// Waits until nothing has been written for so long.
    pub(crate) async fn quiet(&self, pause: Duration) {
        let begin = Instant::now();
        loop {
            let since = self.last_write().unwrap_or(begin).elapsed();
            if since >= pause {
                return;
            }
            tokio::time::sleep(pause.saturating_sub(since)).await;
        }
    }

    fn answered(&self, what: String) {
        let mut seen = self.0.lock();
        seen.last.insert(what.clone(), Instant::now());
        *seen.counts.entry(what).or_default() += 1;
    }
}

/// Whether a request of this name changes something.
pub(crate) fn is_write(what: &str) -> bool {
    !["get ", "list ", "watch "].iter().any(|verb| what.starts_with(verb))
}

/// How many of the requests change something.
pub(crate) fn writes(counts: &Counts) -> u64 {
    counts.iter().filter(|(what, _)| is_write(what)).map(|(_, count)| count).sum()
}

/// A count in words.
pub(crate) fn in_words(counts: &Counts) -> String {
    if counts.is_empty() {
        return "none".to_owned();
    }
    let words: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
    words.join(", ")
}

/// What a request does, as the server would call it.
fn name_of(method: &Method, uri: &Uri) -> String {
    let mut parts = uri.path().trim_matches('/').split('/');
    match parts.next() {
        Some("apis") => drop((parts.next(), parts.next())),
        _ => drop(parts.next()),
    }
    let mut parts = parts.peekable();
    let mut rest: Vec<&str> = Vec::new();
    if parts.peek() == Some(&"namespaces") {
        let all: Vec<&str> = parts.collect();
        rest.extend(if all.len() > 2 { &all[2..] } else { &all[..] });
    } else {
        rest.extend(parts);
    }
    let resource = match rest.as_slice() {
        [resource, _, sub, ..] => format!("{resource}/{sub}"),
        [resource, ..] => (*resource).to_owned(),
        [] => uri.path().to_owned(),
    };
    let watched = uri.query().is_some_and(|query| query.contains("watch=true"));
    let verb = match method.as_str() {
        "GET" if watched => "watch",
        "GET" if rest.len() < 2 => "list",
        "GET" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        other => other,
    };
    format!("{verb} {resource}")
}

impl<S> Layer<S> for Traffic {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { traffic: self.clone(), inner }
    }
}

/// A service whose answers are counted.
#[derive(Clone, Debug)]
pub(crate) struct Counted<S> {
    traffic: Traffic,
    inner: S,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
where
    S: Service<Request<A>, Response = Response<B>, Future: Send + 'static>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let what = name_of(request.method(), request.uri());
        let traffic = self.traffic.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
                traffic.answered(what);
            } else {
                traffic.answered(format!("{what} (failed)"));
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_names_of_the_server() {
        let named = |method: Method, uri: &str| name_of(&method, &uri.parse().unwrap());
        let machines = "/apis/machine.openshift.io/v1beta1/namespaces/x/machines";
        assert_eq!(named(Method::GET, &format!("{machines}?limit=500")), "list machines");
        assert_eq!(named(Method::GET, &format!("{machines}?watch=true")), "watch machines");
        assert_eq!(named(Method::POST, machines), "create machines");
        assert_eq!(named(Method::GET, &format!("{machines}/a")), "get machines");
        assert_eq!(named(Method::PATCH, &format!("{machines}/a/status")), "patch machines/status");
        assert_eq!(named(Method::GET, "/api/v1/nodes"), "list nodes");
        assert_eq!(named(Method::PATCH, "/api/v1/nodes/a"), "patch nodes");
        assert_eq!(named(Method::GET, "/api/v1/namespaces/x"), "get namespaces");
        assert!(is_write("patch nodes") && !is_write("watch nodes"));
    }
}
