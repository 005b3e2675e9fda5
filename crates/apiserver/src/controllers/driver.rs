//! The loop that all simple controllers share: follow, queue, reconcile, try again.

use std::{fmt, time::Duration};

use fleetwright_kstore::EventKind;
use futures::{StreamExt, stream::FuturesUnordered};

use super::{
    feed::{Feed, News},
    queue::{Queue, wait_until},
};
use crate::{server::Server, status::Result, storage::StoredObject};

/// An object that a controller is shown.
pub(super) struct Seen<'a> {
    /// As it is, or as it was last.
    pub object: &'a StoredObject,
    /// As it was before, if it changed.
    pub previous: Option<&'a StoredObject>,
    /// What happened; nothing if it was there when the controller began to look.
    pub event: Option<EventKind>,
}

impl Seen<'_> {
    /// Whether it is of this resource.
    pub(super) fn is(&self, resource: &str) -> bool {
        *self.object.key.resource == *resource
    }

    /// Whether it is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.event == Some(EventKind::Deleted)
    }
}

/// What comes after a key was handled.
pub(super) enum Next {
    /// Nothing until something changes.
    Rest,
    /// It is looked at again by itself.
    After(Duration),
}

/// A controller: which keys an object concerns, and what is done about a key.
pub(super) trait Controller: Send + Sync + 'static {
    /// What it looks at, one at a time.
    type Key: Ord + Clone + fmt::Debug + Send + Sync + 'static;
    /// For the log.
    const NAME: &'static str;
    /// The resources that it follows.
    const FOLLOWS: &'static [&'static str];
    /// How many keys it handles at the same time.
    const WORKERS: usize = 1;
    /// How long it waits at most after a failure.
    const LONGEST_BACKOFF: Duration = Duration::from_secs(1000);

    /// Queues the keys that an object concerns.
    fn observe(&self, seen: &Seen<'_>, queue: &mut Queue<Self::Key>);

    /// Does what is to be done about a key now.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Result<Next>> + Send;
}

/// Runs a controller until the server stops.
pub(super) async fn drive<C: Controller>(server: Server, controller: C) {
    let mut queue = Queue::new(C::LONGEST_BACKOFF);
    let mut feed = Feed::new(&server);
    follow_all(&controller, &mut feed, &mut queue);
    let mut running = FuturesUnordered::new();
    loop {
        // Everything that has happened is known before anything is done about it.
        while let Some(news) = feed.ready().await {
            tell(&controller, news, &mut feed, &mut queue);
        }
        while running.len() < C::WORKERS
            && let Some(key) = queue.pop()
        {
            running.push(handle(&controller, key));
        }
        let due = queue.next_due();
        tokio::select! {
            biased;
            () = server.stopping() => return,
            news = feed.next() => tell(&controller, news, &mut feed, &mut queue),
            Some((key, result)) = running.next(), if !running.is_empty() => {
                settle::<C>(key, result, &mut queue);
            }
            () = wait_until(due) => {}
        }
    }
}

fn follow_all<C: Controller>(controller: &C, feed: &mut Feed, queue: &mut Queue<C::Key>) {
    for resource in C::FOLLOWS {
        for object in feed.follow(&(*resource).into()) {
            controller.observe(&Seen { object: &object, previous: None, event: None }, queue);
        }
    }
}

fn tell<C: Controller>(controller: &C, news: News, feed: &mut Feed, queue: &mut Queue<C::Key>) {
    match news {
        News::Event(event) => {
            let previous = event.previous.as_ref();
            let seen = Seen { object: &event.object, previous, event: Some(event.kind) };
            controller.observe(&seen, queue);
        }
        // Something may have been deleted unseen: all there is, is looked at again.
        News::Lost(_) => follow_all(controller, feed, queue),
    }
}

async fn handle<C: Controller>(controller: &C, key: C::Key) -> (C::Key, Result<Next>) {
    let result = controller.reconcile(&key).await;
    (key, result)
}

fn settle<C: Controller>(key: C::Key, result: Result<Next>, queue: &mut Queue<C::Key>) {
    queue.done(&key);
    match result {
        Ok(Next::Rest) => queue.succeeded(&key),
        Ok(Next::After(delay)) => {
            queue.succeeded(&key);
            queue.add_after(key, delay);
        }
        Err(error) => {
            tracing::debug!(controller = C::NAME, ?key, error = error.message(), "trying again");
            queue.retry(key);
        }
    }
}
