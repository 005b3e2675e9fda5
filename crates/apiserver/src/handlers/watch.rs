//! Watches.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use fleetwright_kstore::{Event, EventKind, Watch};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Body, Call, Reply, Shape, list::parse_version, metadata_only};
use crate::{
    options::ListOptions,
    registry::Resource,
    server::WatchPermit,
    status::{ApiError, Result},
    storage::{Meta, StoredObject},
};

/// How often a quiet watch tells how far it is.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// How long before the end of a watch the last bookmark is sent.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// When a watch ends that does not say: at random between this and twice this, so that clients
/// do not all come back at once.
const MIN_TIMEOUT: Duration = Duration::from_mins(30);
/// How many events are sent in one piece at the most.
const BATCH: usize = 64;

impl Call {
    pub(crate) async fn watch(&mut self) -> Result<Reply> {
        let options = self.list_options(true)?;
        // Kubernetes forgets to say that the request is to blame.
        let version = parse_version(&options.resource_version).map_err(|error| {
            let message = error.message().trim_start_matches("invalid resource version: ");
            ApiError::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", message, None)
        })?;
        let permit = self.server.watch_permit()?;
        let initial = options.send_initial_events == Some(true);
        if options.send_initial_events.is_some() {
            self.wait_for_version(&options).await?;
        }
        let storage = self.server.storage();
        let scope = self.scope();
        let mut watching = Watching {
            call: self.part(),
            options,
            watch: None,
            backlog: VecDeque::new(),
            end: Instant::now(),
            bookmark_at: Instant::now() + BOOKMARK_INTERVAL,
            last_bookmark: None,
            initial_end: None,
            table_headers: true,
            closed: false,
            skip_until: 0,
            _permit: permit,
        };
        if initial {
            let (listing, watch) = storage.list_and_watch(&scope);
            for stored in listing.items {
                if watching.call.selects(&watching.options, &stored) {
                    watching.backlog.push_back(("ADDED", stored));
                }
            }
            if watching.options.bookmarks {
                watching.initial_end = Some(listing.revision);
            }
            watching.watch = Some(watch);
        } else {
            let since = if watching.options.send_initial_events == Some(false) && version == 0 {
                storage.revision()
            } else {
                version
            };
            watching.skip_until = since;
            let Ok(watch) = storage.watch(&scope, since.min(storage.revision())) else {
                let error = ApiError::expired(format!(
                    "too old resource version: {since} ({})",
                    storage.compacted() + 1
                ));
                let line = event_line("ERROR", &[Bytes::from(error.to_value().to_string())]);
                let stream = stream::once(async move { Ok(line) }).boxed();
                return Ok(Reply::ok(Body::Stream(stream)));
            };
            watching.watch = Some(watch);
        }
        let length = match watching.options.timeout_seconds {
            Some(seconds) if seconds > 0 => Duration::from_secs(seconds.unsigned_abs()),
            _ => self.server.random().jitter(MIN_TIMEOUT, 1.0),
        };
        watching.end = Instant::now() + length;
        watching.last_bookmark =
            watching.options.bookmarks.then(|| watching.end - LAST_BOOKMARK.min(length));
        let stream = stream::unfold(watching, |mut watching| async move {
            let piece = watching.next().await?;
            Some((Ok(piece), watching))
        });
        Ok(Reply::ok(Body::Stream(stream.boxed())))
    }

    /// What a watch needs of this call while it goes on without it.
    fn part(&self) -> Call {
        Call {
            server: self.server.clone(),
            resource: Arc::clone(&self.resource),
            context: self.context.clone(),
            query: crate::query::Query::default(),
            headers: http::HeaderMap::new(),
            body: Bytes::new(),
            shape: self.shape,
            warnings: Vec::new(),
            admitted: false,
        }
    }
}

struct Watching {
    call: Call,
    options: ListOptions,
    watch: Option<Watch<Meta>>,
    /// Objects that were there at the beginning and are not sent yet.
    backlog: VecDeque<(&'static str, StoredObject)>,
    end: Instant,
    bookmark_at: Instant,
    last_bookmark: Option<Instant>,
    /// The revision of the bookmark that ends the initial events.
    initial_end: Option<u64>,
    table_headers: bool,
    closed: bool,
    /// Events up to this revision are older than what was asked for.
    skip_until: u64,
    _permit: WatchPermit,
}

enum Wake {
    Event(Event<Meta>),
    Lagged,
    Bookmark,
    End,
}

impl Watching {
    /// The next piece of the stream; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.closed {
            return None;
        }
        loop {
            let mut piece = BytesMut::new();
            for _ in 0..BATCH {
                let Some((kind, stored)) = self.backlog.pop_front() else { break };
                self.push_object(&mut piece, kind, &stored, stored.revision);
            }
            if !piece.is_empty() {
                return Some(piece.freeze());
            }
            if let Some(revision) = self.initial_end.take() {
                return Some(self.bookmark(revision, true));
            }
            match self.wake().await {
                Wake::Event(event) => {
                    self.push_event(&mut piece, &event);
                    self.drain(&mut piece);
                    if !piece.is_empty() {
                        return Some(piece.freeze());
                    }
                }
                Wake::Lagged => {
                    self.closed = true;
                    let error =
                        ApiError::expired("too old resource version: the watch fell behind");
                    return Some(event_line("ERROR", &[Bytes::from(error.to_value().to_string())]));
                }
                Wake::Bookmark => {
                    let revision = self.watch.as_ref().map_or(0, Watch::position);
                    return Some(self.bookmark(revision, false));
                }
                Wake::End => return None,
            }
        }
    }

    async fn wake(&mut self) -> Wake {
        let Some(watch) = &mut self.watch else { return Wake::End };
        let bookmarks = self.options.bookmarks;
        let bookmark_at =
            self.last_bookmark.map_or(self.bookmark_at, |last| last.min(self.bookmark_at));
        tokio::select! {
            biased;
            () = self.call.server.stopping() => Wake::End,
            event = watch.next() => event.map_or(Wake::Lagged, Wake::Event),
            () = tokio::time::sleep_until(self.end) => Wake::End,
            () = tokio::time::sleep_until(bookmark_at), if bookmarks => {
                if self.last_bookmark.is_some_and(|last| last <= Instant::now()) {
                    self.last_bookmark = None;
                    self.bookmark_at = self.end + BOOKMARK_INTERVAL;
                } else {
                    self.bookmark_at = Instant::now() + BOOKMARK_INTERVAL;
                }
                Wake::Bookmark
            }
        }
    }

    /// Adds events that are ready as well.
    fn drain(&mut self, piece: &mut BytesMut) {
        for _ in 1..BATCH {
            match self.watch.as_mut().map(Watch::try_next) {
                Some(Ok(Some(event))) => self.push_event(piece, &event),
                _ => return,
            }
        }
    }

    fn push_event(&mut self, piece: &mut BytesMut, event: &Event<Meta>) {
        if event.revision <= self.skip_until {
            return;
        }
        let selects = |object: &StoredObject| self.call.selects(&self.options, object);
        let before = event.previous.as_ref().is_some_and(selects);
        let now = event.kind != EventKind::Deleted && selects(&event.object);
        // An object that no longer matches is gone for this watcher, as it last saw it.
        match (before, now, &event.previous) {
            (false, true, _) => self.push_object(piece, "ADDED", &event.object, event.revision),
            (true, true, _) => self.push_object(piece, "MODIFIED", &event.object, event.revision),
            (true, false, _) if event.kind == EventKind::Deleted => {
                self.push_object(piece, "DELETED", &event.object, event.revision);
            }
            (true, false, Some(previous)) => {
                self.push_object(piece, "DELETED", previous, event.revision);
            }
            _ => {}
        }
    }

    fn push_object(
        &mut self,
        piece: &mut BytesMut,
        kind: &str,
        stored: &StoredObject,
        revision: u64,
    ) {
        if self.call.shape == Shape::Plain && self.call.is_in_version(stored) {
            let json = if stored.revision == revision {
                stored.json.clone()
            } else {
                stored.json_at(revision)
            };
            piece.put(event_line(kind, &typed(&self.call.resource, json)));
            return;
        }
        let Ok(mut object) = self.call.read(stored) else { return };
        crate::object::set(&mut object, &["metadata", "resourceVersion"], revision.to_string());
        let shown = self.shown(object);
        piece.put(event_line(kind, &[Bytes::from(shown.to_string())]));
    }

    fn shown(&mut self, object: Value) -> Value {
        match self.call.shape {
            Shape::Plain => object,
            Shape::Metadata => metadata_only(object),
            Shape::Table(include) => {
                let metadata = json!({"resourceVersion": crate::object::resource_version(&object)});
                let headers = std::mem::take(&mut self.table_headers);
                self.call.table(include, &metadata, vec![object], headers)
            }
        }
    }

    fn bookmark(&mut self, revision: u64, initial_end: bool) -> Bytes {
        let resource = &self.call.resource;
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let mut object = json!({
            "kind": &*resource.gvk.kind,
            "apiVersion": resource.group_version().to_string(),
            "metadata": metadata,
        });
        if !resource.is_custom() {
            let api_version = resource.group_version().to_string();
            // A bookmark without the empty fields of its kind is still a bookmark.
            let _ = fleetwright_kschema::builtin::normalise(
                &api_version,
                &resource.gvk.kind,
                &mut object,
            );
        }
        let shown = self.shown(object);
        event_line("BOOKMARK", &[Bytes::from(shown.to_string())])
    }
}

/// A stored object with its type. Built-in kinds are stored without, because lists show them so.
pub(crate) fn typed(resource: &Resource, json: Bytes) -> Vec<Bytes> {
    if resource.is_custom() || json.len() < 2 {
        return vec![json];
    }
    let head = format!(
        r#"{{"kind":{},"apiVersion":{},"#,
        json!(&*resource.gvk.kind),
        json!(resource.group_version().to_string())
    );
    vec![Bytes::from(head), json.slice(1..)]
}

fn event_line(kind: &str, object: &[Bytes]) -> Bytes {
    let length: usize = object.iter().map(Bytes::len).sum();
    let mut line = BytesMut::with_capacity(length + 40);
    line.put_slice(b"{\"type\":\"");
    line.put_slice(kind.as_bytes());
    line.put_slice(b"\",\"object\":");
    for piece in object {
        line.put_slice(piece);
    }
    line.put_slice(b"}\n");
    line.freeze()
}
