//! Garbage collection: objects go when all their owners are gone.
//!
//! Every stored resource is followed into a graph of owners and dependents ([`graph`]). What the
//! graph makes suspect is looked at in the store ([`live`]), judged ([`references`]) and deleted,
//! unlinked or let go ([`acts`]). Unlike the real collector, no stand-ins are kept for owners that
//! were not seen: whoever refers to one is looked at again until its owner is seen or gone.

mod acts;
mod graph;
mod live;
mod references;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fleetwright_kstore::EventKind;
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::time::Instant;

use self::{
    acts::{Actor, Outcome},
    graph::{Graph, Node, Plan, Task, Uid},
};
use super::{
    AGENT,
    feed::{Feed, News},
    queue::{Queue, wait_until},
};
use crate::{crd, internal::InternalClient, server::Server, status::Result, storage::StoredObject};

/// Objects that are worked on at the same time.
const WORKERS: usize = 20;
const LONGEST_BACKOFF: Duration = Duration::from_secs(1000);
/// What is never collected and owns nothing.
const IGNORED: &[&str] = &["/events"];
/// Definitions are served by another task, which sees them at about the same time.
const REGISTRY_DELAY: Duration = Duration::from_millis(100);

/// Collects garbage until the server stops.
pub(super) async fn run(server: Server) {
    let mut collector = Collector::new(&server);
    collector.follow_served();
    let mut running = FuturesUnordered::new();
    loop {
        while let Some(news) = collector.feed.ready().await {
            collector.learn(news);
        }
        while running.len() < WORKERS
            && let Some(task) = collector.queue.pop()
        {
            match collector.begin(&task) {
                Some(work) => running.push(async move { (task, work.await) }),
                None => collector.queue.done(&task),
            }
        }
        let due = collector.queue.next_due();
        tokio::select! {
            biased;
            () = server.stopping() => return,
            news = collector.feed.next() => collector.learn(news),
            Some((task, result)) = running.next(), if !running.is_empty() => {
                collector.settle(task, result);
            }
            () = wait_until(collector.follow_at) => collector.follow_served(),
            () = wait_until(due) => {}
        }
    }
}

struct Collector {
    actor: Actor,
    feed: Feed,
    graph: Graph,
    queue: Queue<Task>,
    /// The kinds of the resources that are followed.
    kinds: BTreeMap<Arc<str>, Arc<str>>,
    /// Objects with an owner whose kind is not served.
    puzzling: BTreeSet<Uid>,
    /// When to look again which resources are served.
    follow_at: Option<Instant>,
}

impl Collector {
    fn new(server: &Server) -> Self {
        Self {
            actor: Actor { server: server.clone(), client: InternalClient::new(server, AGENT) },
            feed: Feed::new(server),
            graph: Graph::default(),
            queue: Queue::new(LONGEST_BACKOFF),
            kinds: BTreeMap::new(),
            puzzling: BTreeSet::new(),
            follow_at: None,
        }
    }

    /// Follows every resource that is served, and no other.
    fn follow_served(&mut self) {
        self.follow_at = None;
        let mut served = self.actor.server.registry().stored();
        served.retain(|resource| !IGNORED.contains(&&*resource.storage));
        let gone: Vec<Arc<str>> = self
            .feed
            .followed()
            .filter(|followed| !served.iter().any(|resource| resource.storage == **followed))
            .cloned()
            .collect();
        for resource in gone {
            self.feed.unfollow(&resource);
            self.kinds.remove(&resource);
            for uid in self.graph.of_resource(&resource) {
                let tasks = self.graph.forget(&uid);
                self.queue_all(tasks);
            }
        }
        for resource in &served {
            let kind = resource.gvk.kind.clone();
            if self.kinds.insert(resource.storage.clone(), kind).is_none() {
                self.follow(&resource.storage);
            }
        }
        // Kinds may have come with new versions, too.
        for uid in std::mem::take(&mut self.puzzling) {
            self.queue.add(Task::Collect(uid));
        }
    }

    /// Begins to follow a resource, or does so again after events were missed.
    fn follow(&mut self, resource: &Arc<str>) {
        let mut unseen = self.graph.of_resource(resource);
        for object in self.feed.follow(resource) {
            unseen.remove(&*object.meta.uid);
            self.observe(&object);
        }
        for uid in unseen {
            self.remove(&uid);
        }
    }

    fn learn(&mut self, news: News) {
        match news {
            News::Lost(resource) => self.follow(&resource),
            News::Event(event) => {
                if *event.object.key.resource == *crd::STORAGE {
                    self.follow_at = Some(Instant::now() + REGISTRY_DELAY);
                }
                if event.kind == EventKind::Deleted {
                    self.remove(&event.object.meta.uid);
                } else {
                    self.observe(&event.object);
                }
            }
        }
    }

    fn observe(&mut self, object: &StoredObject) {
        let Some(kind) = self.kinds.get(&object.key.resource).cloned() else { return };
        let uid = Uid::from(&*object.meta.uid);
        let node = Node {
            key: object.key.clone(),
            kind,
            owners: object.meta.owners.to_vec(),
            deletion: object.meta.deletion,
        };
        let tasks = self.graph.observe(&uid, node);
        self.queue_all(tasks);
    }

    fn remove(&mut self, uid: &str) {
        self.puzzling.remove(uid);
        let tasks = self.graph.remove(uid);
        self.queue_all(tasks);
    }

    fn queue_all(&mut self, tasks: Vec<Task>) {
        for task in tasks {
            self.queue.add(task);
        }
    }

    /// The work that a task is, if there is any.
    fn begin(&mut self, task: &Task) -> Option<BoxFuture<'static, Result<Outcome>>> {
        let actor = self.actor.clone();
        let (Task::Collect(uid) | Task::Orphan(uid)) = task;
        let key = self.graph.get(uid)?.key.clone();
        let uid = uid.clone();
        if let Task::Orphan(_) = task {
            let dependents = self.graph.dependents(&uid);
            return Some(Box::pin(async move { actor.orphan(&uid, &key, &dependents).await }));
        }
        match self.graph.plan(&uid)? {
            Plan::Nothing => None,
            Plan::Await(dependents) => {
                for dependent in dependents {
                    self.queue.add(Task::Collect(dependent));
                }
                None
            }
            Plan::Release => Some(Box::pin(async move { actor.release(&uid, &key).await })),
            Plan::Verify { family, gone } => {
                Some(Box::pin(async move { actor.verify(&uid, &key, family, &gone).await }))
            }
        }
    }

    fn settle(&mut self, task: Task, result: Result<Outcome>) {
        self.queue.done(&task);
        match result {
            Ok(Outcome::Done) => self.queue.succeeded(&task),
            // Until an owner is seen, nobody would tell of its end.
            Ok(Outcome::Owned(owners)) => {
                if owners.iter().all(|owner| self.graph.get(owner).is_some()) {
                    self.queue.succeeded(&task);
                } else {
                    self.queue.retry(task);
                }
            }
            Ok(Outcome::UnknownKind) => {
                self.queue.succeeded(&task);
                let (Task::Collect(uid) | Task::Orphan(uid)) = task;
                self.puzzling.insert(uid);
            }
            Err(error) => {
                tracing::debug!(?task, error = error.message(), "trying again");
                self.queue.retry(task);
            }
        }
    }
}
