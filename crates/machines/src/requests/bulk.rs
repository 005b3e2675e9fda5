//! Many requests at once, carefully at first.
//!
//! One goes out, then two, then four, up to a limit: if the first is refused, because a quota is
//! full or a webhook says no, the other thousand are not sent to hear the same.

use futures::{
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt},
};

/// How it went.
#[derive(Debug)]
pub(crate) struct Done<T, E> {
    /// What went well.
    pub(crate) well: Vec<T>,
    /// What did not.
    pub(crate) failed: Vec<E>,
    /// How many were begun, in their order.
    pub(crate) begun: usize,
}

/// Runs jobs with at most `limit` under way. Every success allows one more at a time, so that
/// their number doubles from answer to answer; after a failure no further one is started.
pub(crate) async fn slow_start<T, E>(
    jobs: Vec<BoxFuture<'_, Result<T, E>>>,
    limit: usize,
) -> Done<T, E> {
    let mut jobs = jobs.into_iter();
    let mut running = FuturesUnordered::new();
    let mut done = Done { well: Vec::new(), failed: Vec::new(), begun: 0 };
    let mut allowed = 1;
    loop {
        while done.failed.is_empty() && running.len() < allowed.min(limit) {
            match jobs.next() {
                Some(job) => {
                    running.push(job);
                    done.begun += 1;
                }
                None => break,
            }
        }
        match running.next().await {
            Some(Ok(value)) => {
                done.well.push(value);
                allowed += 1;
            }
            Some(Err(error)) => done.failed.push(error),
            None => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use futures::FutureExt;
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_doubles_up_to_the_limit() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let start = Instant::now();
        let job = |number: usize| {
            let (running, most) = (&running, &most);
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                sleep(Duration::from_secs(1)).await;
                running.fetch_sub(1, Ordering::Relaxed);
                Ok::<_, ()>(number)
            }
            .boxed()
        };
        let done = slow_start((0..1000).map(job).collect(), 32).await;
        assert_eq!((done.well.len(), done.begun), (1000, 1000));
        assert_eq!(most.load(Ordering::Relaxed), 32);
        // 1 + 2 + 4 + 8 + 16 = 31 in five rounds, and 969 in 31 rounds of 32.
        assert_eq!(start.elapsed(), Duration::from_secs(36));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_ends_it() {
        let job = |number: usize| {
            async move { if number < 3 { Ok(number) } else { Err(number) } }.boxed()
        };
        let done = slow_start((0..1000).map(job).collect(), 32).await;
        assert_eq!(done.well.len(), 3);
        assert!(!done.failed.is_empty() && done.begun < 10);
    }
}
