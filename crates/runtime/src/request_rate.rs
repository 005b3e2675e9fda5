//! A limit on requests to the Kubernetes API, as client-go has one and kube has not.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use fleetwright_clock::TokenBucket;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tower::{Layer, Service};

/// Lets `burst` requests through at once and then so many a second. For
/// `kube::client::ClientBuilder::with_layer`; all services that one layer makes share the limit.
#[derive(Clone, Debug)]
pub struct RequestRate(Arc<Mutex<TokenBucket>>);

impl RequestRate {
    /// A limit that has not been used yet.
    pub fn new(per_second: f64, burst: u32) -> Self {
        Self(Arc::new(Mutex::new(TokenBucket::new(per_second, burst))))
    }
}

impl<S> Layer<S> for RequestRate {
    type Service = RateLimited<S>;

    fn layer(&self, inner: S) -> RateLimited<S> {
        RateLimited { rate: self.clone(), inner }
    }
}

/// A service behind a [`RequestRate`].
#[derive(Clone, Debug)]
pub struct RateLimited<S> {
    rate: RequestRate,
    inner: S,
}

impl<S, R> Service<R> for RateLimited<S>
where
    S: Service<R, Future: Send> + Clone + Send + 'static,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let wait = self.rate.0.lock().reserve();
        // The one that is ready is the one to call.
        let next = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, next);
        Box::pin(async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            ready.call(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::future::join_all;
    use tokio::time::Instant;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_the_rest_is_spread() {
        let start = Instant::now();
        let echo =
            tower::service_fn(
                move |()| async move { Ok::<_, Infallible>(start.elapsed().as_millis()) },
            );
        let limited = RequestRate::new(10.0, 2).layer(echo);
        let calls = (0..5).map(|_| limited.clone().oneshot(()));
        let times: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(times, [0, 0, 100, 200, 300]);
    }
}
