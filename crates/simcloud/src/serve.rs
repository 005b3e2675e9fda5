//! A cloud on a loopback socket.

use std::{convert::Infallible, io};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{net::TcpListener, task::JoinSet};
use tower::ServiceExt as _;

use crate::NoAnswer;

/// Most bytes of a request that are read.
const LARGEST: usize = 8 << 20;

/// Serves HTTP without TLS until the listener fails. A lost answer closes the connection.
/// Connections end when the future is dropped.
pub async fn serve<S>(listener: TcpListener, service: S) -> io::Result<Infallible>
where
    S: tower::Service<Request<Bytes>, Response = Response<Bytes>, Error = NoAnswer>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    let mut connections = JoinSet::new();
    loop {
        let (socket, peer) = tokio::select! {
            accepted = listener.accept() => accepted?,
            Some(_) = connections.join_next() => continue,
        };
        let service = service.clone();
        connections.spawn(async move {
            let each = service_fn(move |request: Request<Incoming>| {
                let service = service.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    let Ok(body) = Limited::new(body, LARGEST).collect().await else {
                        return Err(NoAnswer::NotSent);
                    };
                    let request = Request::from_parts(parts, body.to_bytes());
                    service.oneshot(request).await.map(|answer| answer.map(Full::new))
                }
            });
            let server = auto::Builder::new(TokioExecutor::new());
            if let Err(error) = server.serve_connection(TokioIo::new(socket), each).await {
                tracing::debug!(%peer, %error, "connection ended");
            }
        });
    }
}
