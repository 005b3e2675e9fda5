//! The service on a socket, over TLS.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

use crate::Service;
use crate::service::plain;

/// How long a client may take to say hello, and to send its headers.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long open requests may take once the service stops.
const GRACE: Duration = Duration::from_secs(5);
/// The API server holds objects of 3 MiB at most; a review carries two.
const BODY_LIMIT: usize = 8 << 20;
/// Connections at one time; an API server keeps few.
const CONNECTIONS: usize = 1024;

/// Serves until `stop`, then lets open requests finish. A configuration whose certificate
/// resolver looks the certificate up anew lets it be replaced while this runs.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    service: Service,
    stop: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(tls);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    let (acceptor, service) = (acceptor.clone(), service.clone());
                    connections.spawn(connection(stream, acceptor, service, stop.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
    let done = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
    if done.is_err() {
        connections.shutdown().await;
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    service: Service,
    stop: CancellationToken,
) {
    let Ok(Ok(stream)) = timeout(PATIENCE, acceptor.accept(stream)).await else { return };
    let handler = service_fn(move |request| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(answer(service, request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let connection = builder.serve_connection(TokioIo::new(stream), handler);
    tokio::pin!(connection);
    let mut stopping = false;
    loop {
        tokio::select! {
            // A client that goes away is not worth a word.
            _ = connection.as_mut() => return,
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn answer(service: Service, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let response = match timeout(PATIENCE, Limited::new(body, BODY_LIMIT).collect()).await {
        Ok(Ok(body)) => service.answer(Request::from_parts(head, body.to_bytes())).await,
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            plain(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large")
        }
        Ok(Err(_)) => plain(StatusCode::BAD_REQUEST, "the body broke off"),
        Err(_) => plain(StatusCode::REQUEST_TIMEOUT, "the body did not come"),
    };
    response.map(Full::new)
}
