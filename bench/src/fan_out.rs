//! Many watchers of the same objects.
//!
//! Two passes: writes at an even pace, which show how long an event takes to arrive, and writes
//! at full speed, which show how many events a server can deliver. Nothing is parsed: an event
//! is a line, and with one writer the lines come in the order of the writes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Method, Uri};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::load::{self, Make};
use crate::measure::Scale;
use crate::objects::{self, WATCHED_NAMESPACE};
use crate::operations;
use crate::results::{FanOut, percentile};
use crate::servers::Running;
use crate::target::{Answer, Caller, json_request};

/// How many watch.
const WATCHERS: usize = 100;
/// How many write at full speed.
const WRITERS: usize = 4;
/// The time between writes at an even pace: 20 a second, 2,000 events a second.
const PACE: Duration = Duration::from_millis(50);
/// Events that have not arrived by then are not waited for.
const LIMIT: Duration = Duration::from_mins(1);
/// More pieces of an answer than one event is cut into.
const PIECES_KEPT: usize = 8;

/// Measures both passes.
pub(crate) async fn measure(running: &Running, scale: &Scale) -> Result<FanOut> {
    let create = operations::numbered(&running.target, WATCHED_NAMESPACE)?;
    let mut latencies = paced(running, &create, scale.paced_writes).await?;
    latencies.sort_unstable();

    // Their names follow those of the first pass.
    let first = scale.paced_writes;
    let further: Make = Arc::new(move |caller, n| create(caller, first + n));
    let writes = scale.watched_writes;
    let mut watchers = Watchers::open(running, writes).await?;
    let before = load::cpu(running)?;
    let begin = Instant::now();
    load::send_all(running, WRITERS, writes, &further).await?;
    watchers.finish().await?;
    let window = begin.elapsed();
    Ok(FanOut {
        watchers: WATCHERS,
        writes,
        delivered: watchers.delivered.load(Ordering::Relaxed),
        window,
        resumed: watchers.resumed.load(Ordering::Relaxed),
        cpu: load::spent(before, load::cpu(running)?),
        paced_writes_per_second: 1.0 / PACE.as_secs_f64(),
        p50: percentile(&latencies, 50),
        p99: percentile(&latencies, 99),
    })
}

/// One writer at an even pace. Returns how long each event took to each watcher.
async fn paced(running: &Running, create: &Make, writes: usize) -> Result<Vec<Duration>> {
    let mut watchers = Watchers::open(running, writes).await?;
    let mut caller = running.target.caller(0);
    let begin = Instant::now();
    for n in 0..writes {
        sleep_until(begin + PACE * u32::try_from(n)?).await;
        let request = create(0, n);
        if let Some(moment) = watchers.sent.get(n) {
            moment.get_or_init(Instant::now);
        }
        caller.send(request).await?.expect_success().await?;
    }
    let latencies = watchers.finish().await?;
    if latencies.len() < writes * WATCHERS {
        bail!("{} of {} events arrived in time", latencies.len(), writes * WATCHERS);
    }
    Ok(latencies)
}

/// Open watches, and what has arrived so far.
struct Watchers {
    tasks: JoinSet<Result<Vec<Duration>>>,
    /// When each write was sent, if anybody wants to know.
    sent: Arc<[OnceLock<Instant>]>,
    delivered: Arc<AtomicUsize>,
    resumed: Arc<AtomicUsize>,
}

impl Watchers {
    /// Opens all watches, each of which ends after `expected` events.
    async fn open(running: &Running, expected: usize) -> Result<Self> {
        let target = &running.target;
        let path = objects::machines(WATCHED_NAMESPACE);
        let list = target.must(Method::GET, &format!("{path}?limit=1"), None).await?;
        let revision = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        let mut watchers = Self {
            tasks: JoinSet::new(),
            sent: (0..expected).map(|_| OnceLock::new()).collect(),
            delivered: Arc::default(),
            resumed: Arc::default(),
        };
        for number in 0..WATCHERS {
            let mut watcher = Watcher {
                caller: target.caller(number),
                address: target.uri(&format!("{path}?watch=true&resourceVersion="))?,
                expected,
                sent: Arc::clone(&watchers.sent),
                delivered: Arc::clone(&watchers.delivered),
                resumed: Arc::clone(&watchers.resumed),
            };
            let answer = watcher.watch(&revision).await?;
            watchers.tasks.spawn(async move { watcher.follow(answer).await });
        }
        Ok(watchers)
    }

    /// Waits for all events, or for the limit. Returns how long they took.
    async fn finish(&mut self) -> Result<Vec<Duration>> {
        let all = async {
            let mut latencies = Vec::new();
            while let Some(outcome) = self.tasks.join_next().await {
                latencies.append(&mut outcome??);
            }
            anyhow::Ok(latencies)
        };
        timeout(LIMIT, all).await.unwrap_or_else(|_| Ok(Vec::new()))
    }
}

/// One watcher.
struct Watcher {
    caller: Caller,
    /// Without the revision.
    address: Uri,
    expected: usize,
    sent: Arc<[OnceLock<Instant>]>,
    delivered: Arc<AtomicUsize>,
    resumed: Arc<AtomicUsize>,
}

impl Watcher {
    /// Opens the watch.
    async fn watch(&mut self, revision: &str) -> Result<Answer> {
        let address: Uri = format!("{}{revision}", self.address).parse()?;
        let mut answer = self.caller.send(json_request(Method::GET, address, Bytes::new())).await?;
        if !answer.status.is_success() {
            let text = answer.read().await?;
            bail!(
                "a watch was answered with {}: {}",
                answer.status,
                String::from_utf8_lossy(&text)
            );
        }
        Ok(answer)
    }

    /// Reads until all events are there. A watch that the server ends is resumed from the last
    /// event, as every informer does.
    async fn follow(&mut self, mut answer: Answer) -> Result<Vec<Duration>> {
        let mut latencies = Vec::new();
        let mut seen = 0;
        let mut recent: Vec<Bytes> = Vec::new();
        while seen < self.expected {
            let Some(piece) = answer.piece().await? else {
                let revision = last_revision(&recent).context("a watch ended and cannot go on")?;
                self.resumed.fetch_add(1, Ordering::Relaxed);
                answer = self.watch(&revision).await?;
                recent.clear();
                continue;
            };
            let now = Instant::now();
            #[expect(clippy::naive_bytecount, reason = "the compiler makes it fast enough")]
            let events = piece.iter().filter(|byte| **byte == b'\n').count();
            for sent in self.sent.iter().skip(seen).take(events).filter_map(OnceLock::get) {
                latencies.push(now.saturating_duration_since(*sent));
            }
            seen += events;
            self.delivered.fetch_add(events, Ordering::Relaxed);
            if recent.len() == PIECES_KEPT {
                recent.remove(0);
            }
            recent.push(piece);
        }
        Ok(latencies)
    }
}

/// The revision of the last whole event in some pieces of a watch.
fn last_revision(pieces: &[Bytes]) -> Option<String> {
    const KEY: &str = r#""resourceVersion":""#;
    let text = String::from_utf8_lossy(&pieces.concat()).into_owned();
    let whole = &text[..text.rfind('\n')?];
    let from = whole.rfind(KEY)? + KEY.len();
    let digits = &whole[from..];
    Some(digits[..digits.find('"')?].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_goes_on_after_the_last_whole_event() {
        let event = |revision: &str| {
            format!(
                r#"{{"type":"ADDED","object":{{"metadata":{{"resourceVersion":"{revision}"}}}}}}"#
            )
        };
        let text = format!("{}\n{}\n{}", event("7"), event("8"), event("9"));
        let (head, tail) = text.split_at(90);
        let pieces = [Bytes::from(head.to_owned()), Bytes::from(tail.to_owned())];
        assert_eq!(last_revision(&pieces).as_deref(), Some("8"));
        assert_eq!(last_revision(&[Bytes::from(event("7"))]), None);
        assert_eq!(last_revision(&[]), None);
    }
}
