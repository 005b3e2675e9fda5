//! The service that answers reviews.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Response, StatusCode, header::CONTENT_TYPE};

use crate::{Registry, review};

/// Answers AdmissionReviews at the paths of a [`Registry`].
#[derive(Clone)]
pub struct Service {
    registry: Arc<Registry>,
}

impl Service {
    /// Answers for these webhooks.
    pub fn new(registry: Registry) -> Self {
        Self { registry: Arc::new(registry) }
    }

    /// Answers one request.
    pub async fn answer(&self, request: http::Request<Bytes>) -> Response<Bytes> {
        let Some(webhook) = self.registry.at(request.uri().path()) else {
            return plain(StatusCode::NOT_FOUND, "there is no webhook here");
        };
        if request.method() != Method::POST {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "reviews are posted");
        }
        let (uid, question) = match review::read(request.body()) {
            Ok(found) => found,
            Err(error) => return plain(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        match webhook.rule.review(&question).await {
            Ok(verdict) => {
                let answer = review::write(&uid, webhook.stage, verdict);
                respond(StatusCode::OK, "application/json", answer.to_string().into())
            }
            Err(problem) => {
                tracing::warn!(webhook = webhook.name, %problem, "a rule could not do its work");
                plain(StatusCode::INTERNAL_SERVER_ERROR, &problem)
            }
        }
    }
}

impl tower::Service<http::Request<Bytes>> for Service {
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Bytes>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Bytes>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

pub(crate) fn plain(status: StatusCode, text: &str) -> Response<Bytes> {
    respond(status, "text/plain; charset=utf-8", Bytes::copy_from_slice(text.as_bytes()))
}

fn respond(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let value = http::HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}
