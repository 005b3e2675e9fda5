//! Several resources of the store, followed as one.

use std::{collections::BTreeMap, pin::pin, sync::Arc, task::Poll};

use fleetwright_kstore::{Event, Lagged, Scope, Watch};
use futures::{
    StreamExt,
    future::{AbortHandle, Abortable, BoxFuture},
    stream::FuturesUnordered,
};

use crate::{
    server::Server,
    storage::{Meta, StoredObject},
};

/// What is new.
pub(super) enum News {
    /// One object of a resource changed.
    Event(Event<Meta>),
    /// The feed fell behind: what happened to this resource is not known, and it is not followed
    /// any more.
    Lost(Arc<str>),
}

type Step = (Arc<str>, Watch<Meta>, Result<Event<Meta>, Lagged>);

/// The resources that a controller follows.
pub(super) struct Feed {
    server: Server,
    followed: BTreeMap<Arc<str>, AbortHandle>,
    watches: FuturesUnordered<Abortable<BoxFuture<'static, Step>>>,
}

impl Feed {
    pub(super) fn new(server: &Server) -> Self {
        Self { server: server.clone(), followed: BTreeMap::new(), watches: FuturesUnordered::new() }
    }

    /// Follows a resource from now on; returns its objects.
    pub(super) fn follow(&mut self, resource: &Arc<str>) -> Vec<StoredObject> {
        let (listing, watch) = self.server.storage().list_and_watch(&Scope::all(resource.clone()));
        self.unfollow(resource);
        self.wait(resource.clone(), watch);
        listing.items
    }

    /// Follows a resource no more. What it has not told is not told.
    pub(super) fn unfollow(&mut self, resource: &str) {
        if let Some(watch) = self.followed.remove(resource) {
            watch.abort();
        }
    }

    /// The resources that are followed.
    pub(super) fn followed(&self) -> impl Iterator<Item = &Arc<str>> {
        self.followed.keys()
    }

    /// What is next; waits for it. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> News {
        loop {
            match self.watches.next().await {
                // Nothing is followed, or nothing but what was unfollowed just now.
                None => std::future::pending().await,
                Some(Err(_)) => {}
                Some(Ok((resource, watch, Ok(event)))) => {
                    self.wait(resource, watch);
                    return News::Event(event);
                }
                Some(Ok((resource, _, Err(Lagged)))) => {
                    self.unfollow(&resource);
                    return News::Lost(resource);
                }
            }
        }
    }

    /// What is next, if it has happened already.
    pub(super) async fn ready(&mut self) -> Option<News> {
        let next = pin!(self.next());
        match futures::poll!(next) {
            Poll::Ready(news) => Some(news),
            Poll::Pending => None,
        }
    }

    fn wait(&mut self, resource: Arc<str>, mut watch: Watch<Meta>) {
        let (handle, registration) = AbortHandle::new_pair();
        self.followed.insert(resource.clone(), handle);
        let step: BoxFuture<'static, Step> = Box::pin(async move {
            let event = watch.next().await;
            (resource, watch, event)
        });
        self.watches.push(Abortable::new(step, registration));
    }
}
