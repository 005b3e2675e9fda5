//! `/metrics`, `/healthz` and `/readyz`, over HTTP for the binary and as plain functions for
//! everybody else.

use std::{collections::BTreeMap, convert::Infallible, fmt::Write as _, io, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use parking_lot::RwLock;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Metrics, TEXT_MEDIA_TYPE};

/// One question of health: `Err` says what is wrong, in words for a person.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The named checks behind `/healthz` (is the process alive) and `/readyz` (may it be used).
#[derive(Clone, Default)]
pub struct Health(Arc<RwLock<Checks>>);

#[derive(Default)]
struct Checks {
    live: BTreeMap<String, Check>,
    ready: BTreeMap<String, Check>,
}

impl Health {
    /// No checks: alive and ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// A process that fails this check should be restarted.
    pub fn add_live(&self, name: &str, check: Check) {
        self.0.write().live.insert(name.to_owned(), check);
    }

    /// A process that fails this check should be left alone until it passes.
    pub fn add_ready(&self, name: &str, check: Check) {
        self.0.write().ready.insert(name.to_owned(), check);
    }

    /// The answer to `path`, or `None` if it is not a health path. `/readyz/<name>` asks one
    /// check only.
    fn outcome(&self, path: &str) -> Option<Vec<(String, Result<(), String>)>> {
        let mut parts = path.trim_matches('/').splitn(2, '/');
        let checks = self.0.read();
        let set = match parts.next()? {
            "healthz" | "livez" => &checks.live,
            "readyz" => &checks.ready,
            _ => return None,
        };
        match parts.next() {
            None => Some(set.iter().map(|(name, check)| (name.clone(), check())).collect()),
            Some("ping") => Some(Vec::new()),
            Some(name) => set.get(name).map(|check| vec![(name.to_owned(), check())]),
        }
    }
}

/// Answers `/healthz` and `/readyz`; `?verbose` lists every check, as Kubernetes does.
pub fn answer_health<B>(health: &Health, request: &Request<B>) -> Response<Full<Bytes>> {
    if let Some(refusal) = refuse_method(request) {
        return refusal;
    }
    let Some(outcome) = health.outcome(request.uri().path()) else {
        return not_found();
    };
    let well = outcome.iter().all(|(_, result)| result.is_ok());
    let verbose = request.uri().query().is_some_and(|query| {
        query.split('&').any(|pair| pair == "verbose" || pair.starts_with("verbose="))
    });
    if well && !verbose {
        return plain(StatusCode::OK, "ok".to_owned());
    }
    let mut text = "[+]ping ok\n".to_owned();
    for (name, result) in outcome {
        // Writing to a string cannot fail.
        let _ = match result {
            Ok(()) => writeln!(text, "[+]{name} ok"),
            Err(reason) => writeln!(text, "[-]{name} failed: {reason}"),
        };
    }
    let verdict = if well { "passed" } else { "failed" };
    let _ = writeln!(text, "check {verdict}");
    plain(if well { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR }, text)
}

/// Answers `/metrics`.
pub fn answer_metrics<B>(metrics: &Metrics, request: &Request<B>) -> Response<Full<Bytes>> {
    if let Some(refusal) = refuse_method(request) {
        return refusal;
    }
    if request.uri().path() != "/metrics" {
        return not_found();
    }
    match metrics.text() {
        Ok(text) => respond(StatusCode::OK, TEXT_MEDIA_TYPE, text),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// Serves `answer` on `listener` until `stop`, then lets open requests finish. Connections
/// belong to this call: dropping it closes them.
pub async fn serve<F>(listener: TcpListener, answer: F, stop: CancellationToken) -> io::Result<()>
where
    F: Fn(&Request<hyper::body::Incoming>) -> Response<Full<Bytes>> + Clone + Send + Sync + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::warn!(%error, "a connection ended badly");
                }
                continue;
            }
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Usually a passing lack of file descriptors: neither fatal nor worth a
                    // busy loop.
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let (answer, stop) = (answer.clone(), stop.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let response = answer(&request);
                async move { Ok::<_, Infallible>(response) }
            });
            let builder = auto::Builder::new(TokioExecutor::new());
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            tokio::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%peer, %error, "connection closed");
            }
        });
    }
    while connections.join_next().await.is_some() {}
    Ok(())
}

fn refuse_method<B>(request: &Request<B>) -> Option<Response<Full<Bytes>>> {
    let allowed = matches!(*request.method(), Method::GET | Method::HEAD);
    (!allowed).then(|| plain(StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned()))
}

fn not_found() -> Response<Full<Bytes>> {
    plain(StatusCode::NOT_FOUND, "404 page not found\n".to_owned())
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", text)
}

fn respond(status: StatusCode, media_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use http_body_util::BodyExt;

    use super::*;

    fn get(uri: &str) -> Request<()> {
        Request::get(uri).body(()).unwrap()
    }

    fn body(response: Response<Full<Bytes>>) -> (u16, String) {
        let status = response.status().as_u16();
        let bytes = block_on(response.into_body().collect()).unwrap().to_bytes();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn health_answers_as_kubernetes_does() {
        let health = Health::new();
        health.add_ready("cache", Arc::new(|| Err("machines have not been listed yet".into())));
        health.add_ready("leader", Arc::new(|| Ok(())));
        assert_eq!(body(answer_health(&health, &get("/healthz"))), (200, "ok".into()));
        assert_eq!(
            body(answer_health(&health, &get("/readyz"))),
            (
                500,
                "[+]ping ok\n[-]cache failed: machines have not been listed yet\n\
                 [+]leader ok\ncheck failed\n"
                    .into()
            )
        );
        assert_eq!(body(answer_health(&health, &get("/readyz/leader"))), (200, "ok".into()));
        assert_eq!(body(answer_health(&health, &get("/readyz/nobody"))).0, 404);
        assert_eq!(
            body(answer_health(&health, &get("/healthz?verbose"))),
            (200, "[+]ping ok\ncheck passed\n".into())
        );
    }

    #[test]
    fn metrics_answer_only_a_get_of_their_path() {
        let metrics = Metrics::new();
        metrics.queue("machines").adds.inc();
        let (status, text) = body(answer_metrics(&metrics, &get("/metrics")));
        assert_eq!(status, 200);
        assert!(
            text.contains(r#"workqueue_adds_total{name="machines",controller="machines"} 1"#),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"));
        assert_eq!(body(answer_metrics(&metrics, &get("/"))).0, 404);
        let post = Request::post("/metrics").body(()).unwrap();
        assert_eq!(body(answer_metrics(&metrics, &post)).0, 405);
    }

    #[test]
    fn serves_over_a_socket_and_stops() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (health, stop) = (Health::new(), CancellationToken::new());
            let server = serve(
                listener,
                move |request: &Request<_>| answer_health(&health, request),
                stop.clone(),
            );
            let client = async {
                let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
                stream
                    .write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                    .await
                    .unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).await.unwrap();
                stop.cancel();
                text
            };
            let (served, text) = tokio::join!(server, client);
            served.unwrap();
            assert!(text.starts_with("HTTP/1.1 200 OK") && text.ends_with("ok"), "{text}");
        });
    }
}
