//! Answers that are asked for once and shared.

use std::{collections::BTreeMap, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::CloudError;

type Question<V> = Shared<BoxFuture<'static, Result<V, CloudError>>>;

/// A cache of answers by question. Those who ask while a question is under way share its answer;
/// errors are told to all of them and forgotten.
#[derive(Debug)]
pub struct Coalesced<K, V> {
    time_to_live: Duration,
    entries: Mutex<BTreeMap<K, Entry<V>>>,
}

#[derive(Debug)]
struct Entry<V> {
    asked: Instant,
    question: Question<V>,
}

/// Expired answers are swept when there are more than this.
const SWEEP_ABOVE: usize = 1024;

impl<K, V> Coalesced<K, V>
where
    K: Ord + Clone,
    V: Clone + Send + Sync + 'static,
{
    /// A cache whose answers hold this long.
    pub fn new(time_to_live: Duration) -> Self {
        Self { time_to_live, entries: Mutex::default() }
    }

    /// The answer to `key`: a cached one, or that of `ask`.
    pub async fn get<F>(&self, key: &K, ask: impl FnOnce() -> F) -> Result<V, CloudError>
    where
        F: Future<Output = Result<V, CloudError>> + Send + 'static,
    {
        let question = self.question(key, ask);
        let answer = question.clone().await;
        if answer.is_err() {
            let mut entries = self.entries.lock();
            if entries.get(key).is_some_and(|entry| entry.question.ptr_eq(&question)) {
                entries.remove(key);
            }
        }
        answer
    }

    fn question<F>(&self, key: &K, ask: impl FnOnce() -> F) -> Question<V>
    where
        F: Future<Output = Result<V, CloudError>> + Send + 'static,
    {
        let now = Instant::now();
        let holds = |entry: &Entry<V>| now.duration_since(entry.asked) < self.time_to_live;
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(key)
            && holds(entry)
        {
            return entry.question.clone();
        }
        if entries.len() >= SWEEP_ABOVE {
            entries.retain(|_, entry| holds(entry));
        }
        let question = ask().boxed().shared();
        entries.insert(key.clone(), Entry { asked: now, question: question.clone() });
        question
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use super::*;
    use crate::ErrorClass;

    #[tokio::test(start_paused = true)]
    async fn many_ask_and_one_call_answers_until_it_is_old() {
        let cache = Coalesced::new(Duration::from_mins(1));
        let calls = Arc::new(AtomicU32::new(0));
        let ask = || {
            let calls = Arc::clone(&calls);
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(calls.fetch_add(1, Ordering::Relaxed))
            }
        };
        let answers = futures::future::join_all((0..50).map(|_| cache.get(&"a", ask))).await;
        assert!(answers.iter().all(|answer| *answer == Ok(0)));
        assert_eq!(cache.get(&"b", ask).await, Ok(1));
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(cache.get(&"a", ask).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn errors_are_told_and_forgotten() {
        let cache: Coalesced<&str, u32> = Coalesced::new(Duration::from_mins(1));
        let error = CloudError::new(ErrorClass::Transient, "Do", "Code", "no");
        let failed = error.clone();
        assert_eq!(cache.get(&"a", || async move { Err(failed) }).await, Err(error));
        assert_eq!(cache.get(&"a", || async { Ok(1) }).await, Ok(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_survives_whoever_asked_it_first() {
        let cache: Coalesced<&str, u32> = Coalesced::new(Duration::from_mins(1));
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(7)
        };
        let impatient = tokio::time::timeout(Duration::from_secs(1), cache.get(&"a", slow)).await;
        assert!(impatient.is_err());
        assert_eq!(cache.get(&"a", || async { Ok(8) }).await, Ok(7));
    }
}
