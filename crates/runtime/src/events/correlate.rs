//! Which events are written, and as what, with client-go's rules.
//!
//! - The same event again raises the count of the first.
//! - Ten events that differ only in their message within ten minutes become one, which says so.
//! - A source may say 25 things about an object at once, then one every five minutes.

use std::{collections::BTreeSet, time::Duration};

use fleetwright_clock::TokenBucket;
use k8s_openapi::{api::core::v1::Event, apimachinery::pkg::apis::meta::v1::Time};
use tokio::time::Instant;

use super::lru::Lru;

const CACHE_SIZE: usize = 4096;
const SIMILAR_EVENTS: usize = 10;
const SIMILAR_WITHIN: Duration = Duration::from_mins(10);
const BURST: u32 = 25;
const REFILL_A_SECOND: f64 = 1.0 / 300.0;

/// What every combined event starts with; users and tools match on it.
const COMBINED: &str = "(combined from similar events): ";

/// What to do with an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Say nothing: its object has had its share.
    Skip,
    /// Write it as a new object.
    Create(Box<Event>),
    /// Raise the count of the one that was written before; `Event` is how it looks then.
    Update(Box<Event>),
}

/// Remembers what was said.
#[derive(Debug)]
pub(super) struct Correlator {
    similar: Lru<Similar>,
    said: Lru<Option<Said>>,
    shares: Lru<TokenBucket>,
}

/// Events that differ only in their message.
#[derive(Debug)]
struct Similar {
    messages: BTreeSet<String>,
    last: Instant,
}

#[derive(Clone, Debug)]
struct Said {
    name: Option<String>,
    first: Option<Time>,
    count: i32,
}

impl Correlator {
    pub(super) fn new() -> Self {
        Self {
            similar: Lru::new(CACHE_SIZE),
            said: Lru::new(CACHE_SIZE),
            shares: Lru::new(CACHE_SIZE),
        }
    }

    pub(super) fn judge(&mut self, event: Event) -> Verdict {
        let (mut event, key) = self.combine(event);
        let said = self.said.get_or_insert(&key, || None);
        let again = said.is_some();
        if let Some(said) = said {
            event.metadata.name.clone_from(&said.name);
            event.first_timestamp.clone_from(&said.first);
            event.count = Some(said.count.saturating_add(1));
        }
        *said = Some(Said {
            name: event.metadata.name.clone(),
            first: event.first_timestamp.clone(),
            count: event.count.unwrap_or(1),
        });
        let share = self
            .shares
            .get_or_insert(&key_of(&event, &[]), || TokenBucket::new(REFILL_A_SECOND, BURST));
        if !share.try_take() {
            Verdict::Skip
        } else if again {
            Verdict::Update(Box::new(event))
        } else {
            Verdict::Create(Box::new(event))
        }
    }

    /// The event, or one that stands for it and those like it; and under what key it is counted.
    fn combine(&mut self, mut event: Event) -> (Event, String) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (reason, message) = (text(&event.reason), text(&event.message));
        let now = Instant::now();
        let similar_key = key_of(&event, &["similar", &reason]);
        let similar = self
            .similar
            .get_or_insert(&similar_key, || Similar { messages: BTreeSet::new(), last: now });
        if now.duration_since(similar.last) > SIMILAR_WITHIN {
            similar.messages.clear();
        }
        similar.messages.insert(message.clone());
        similar.last = now;
        if similar.messages.len() < SIMILAR_EVENTS {
            let field = text(&event.involved_object.field_path);
            let key = key_of(&event, &["same", &reason, &field, &message]);
            return (event, key);
        }
        // The set stays just below the limit: any other message goes over it again.
        similar.messages.pop_first();
        event.message = Some(format!("{COMBINED}{message}"));
        (event, similar_key)
    }
}

/// Source, object and type, which all keys have in common, and what else tells events apart.
fn key_of(event: &Event, more: &[&str]) -> String {
    let source = event.source.as_ref();
    let object = &event.involved_object;
    let parts = [
        source.and_then(|source| source.component.as_deref()),
        source.and_then(|source| source.host.as_deref()),
        object.kind.as_deref(),
        object.namespace.as_deref(),
        object.name.as_deref(),
        object.uid.as_deref(),
        object.api_version.as_deref(),
        event.type_.as_deref(),
    ];
    let parts = parts.into_iter().map(Option::unwrap_or_default).chain(more.iter().copied());
    parts.collect::<Vec<_>>().join("\0")
}
