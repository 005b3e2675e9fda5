//! The tables of the file.
//!
//! - `meta`: the format, the revision, and up to which revision events are forgotten.
//! - `objects`: every object as it is.
//! - `log`: every remembered event, with the object as it was *before* it. The object after it is
//!   the one before the next event of the same key, or the current one; so an object is written
//!   twice, not three times, and any tail of the log can be read back whole.
//!
//! A change of the tables is a new [`FORMAT`], and comes with code that reads the old one.

use std::sync::Arc;

use bytes::Bytes;
use redb::TableDefinition;

use crate::{
    key::Key,
    object::{Index, Stored},
    write::{Event, EventKind},
};

/// The format that this code reads and writes.
pub(crate) const FORMAT: u64 = 1;

pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
pub(crate) const OBJECTS: TableDefinition<'_, KeyRow<'_>, ObjectRow<'_>> =
    TableDefinition::new("objects");
pub(crate) const LOG: TableDefinition<'_, u64, LogRow<'_>> = TableDefinition::new("log");

/// Names in `meta`.
pub(crate) const META_FORMAT: &str = "format";
pub(crate) const META_REVISION: &str = "revision";
pub(crate) const META_COMPACTED: &str = "compacted";

/// Resource, namespace, name.
pub(crate) type KeyRow<'a> = (&'a str, &'a str, &'a str);
/// Revision, created, where the digits of the revision begin, JSON.
pub(crate) type ObjectRow<'a> = (u64, u64, u64, &'a [u8]);
/// Kind, time in milliseconds since 1970, key, previous object, and, of a deletion, the final
/// object.
pub(crate) type LogRow<'a> = (u8, i64, KeyRow<'a>, Option<ObjectRow<'a>>, Option<ObjectRow<'a>>);

pub(crate) fn key_row(key: &Key) -> KeyRow<'_> {
    (&key.resource, &key.namespace, &key.name)
}

pub(crate) fn object_row<M>(object: &Stored<M>) -> ObjectRow<'_> {
    (object.revision, object.created, object.digits_at as u64, &object.json)
}

pub(crate) fn log_row<M>(event: &Event<M>, at: i64) -> LogRow<'_> {
    let (kind, last) = match event.kind {
        EventKind::Added => (0, None),
        EventKind::Modified => (1, None),
        EventKind::Deleted => (2, Some(object_row(&event.object))),
    };
    (kind, at, key_row(&event.object.key), event.previous.as_deref().map(object_row), last)
}

/// Rebuilds the event of a row. `after` is the object as it was after the event; the result's
/// `previous` is what it was before.
pub(crate) fn event<I: Index>(
    revision: u64,
    (kind, _, key, previous, last): LogRow<'_>,
    after: Option<Arc<Stored<I::Meta>>>,
    index: &I,
) -> Result<Event<I::Meta>, String> {
    let key = match (&after, key) {
        (Some(after), _) => after.key.clone(),
        (None, (resource, namespace, name)) => Key::new(resource, namespace, name),
    };
    let read = |row: Option<ObjectRow<'_>>| {
        row.map(|row| object(key.clone(), row, index).map(Arc::new)).transpose()
    };
    let previous = read(previous)?;
    let (kind, object) = match (kind, after, read(last)?) {
        (0, Some(after), None) => (EventKind::Added, after),
        (1, Some(after), None) => (EventKind::Modified, after),
        (2, None, Some(last)) => (EventKind::Deleted, last),
        _ => return Err(format!("event {revision} does not fit its object {key}")),
    };
    if object.revision != revision || previous.is_some() == (kind == EventKind::Added) {
        return Err(format!("event {revision} does not fit its object {key}"));
    }
    Ok(Event { revision, kind, object, previous })
}

/// Reads an object back, and makes sure that its revision is where it should be.
pub(crate) fn object<I: Index>(
    key: Key,
    (revision, created, digits_at, json): ObjectRow<'_>,
    index: &I,
) -> Result<Stored<I::Meta>, String> {
    let digits_at = usize::try_from(digits_at).unwrap_or(usize::MAX);
    let digits = revision.to_string();
    if json.get(digits_at..).is_none_or(|rest| !rest.starts_with(digits.as_bytes())) {
        return Err(format!("{key} does not carry its revision {revision}"));
    }
    let meta = index.index(&key, json);
    Ok(Stored { key, revision, created, json: Bytes::copy_from_slice(json), meta, digits_at })
}
