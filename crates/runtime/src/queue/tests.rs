use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tokio::time::advance;

use super::*;

fn queue() -> WorkQueue<u8> {
    WorkQueue::new("test", RateLimits::default(), &Metrics::new())
}

fn milliseconds(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What can be taken without waiting.
async fn take(queue: &WorkQueue<u8>) -> Option<u8> {
    tokio::select! {
        biased;
        item = queue.get() => item,
        () = std::future::ready(()) => None,
    }
}

#[tokio::test(start_paused = true)]
async fn items_come_once_in_order_and_again_after_done() {
    let queue = queue();
    for item in [3, 1, 3, 2] {
        queue.add(item);
    }
    assert_eq!(queue.len(), 3);
    assert_eq!(queue.get().await, Some(3));
    queue.add(3);
    queue.add(3);
    assert_eq!((queue.get().await, queue.get().await), (Some(1), Some(2)));
    assert_eq!(take(&queue).await, None, "3 is being processed");
    queue.done(&3);
    assert_eq!(queue.get().await, Some(3));
    queue.done(&3);
    assert_eq!(take(&queue).await, None, "nothing was added since");
}

#[tokio::test(start_paused = true)]
async fn the_earliest_of_several_times_counts() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after(1, milliseconds(500));
    queue.add_after(1, milliseconds(200));
    queue.add_after(1, milliseconds(900));
    assert_eq!(queue.get().await, Some(1));
    assert_eq!(start.elapsed(), milliseconds(200));
    queue.done(&1);
    advance(Duration::from_secs(10)).await;
    assert_eq!(take(&queue).await, None, "the later times are forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_learns_of_an_earlier_time_and_of_an_item() {
    let queue = queue();
    queue.add_after(1, Duration::from_mins(1));
    let start = Instant::now();
    let (item, ()) = tokio::join!(queue.get(), async { queue.add_after(2, milliseconds(10)) });
    assert_eq!((item, start.elapsed()), (Some(2), milliseconds(10)));
    let (item, ()) = tokio::join!(queue.get(), async { queue.add(3) });
    assert_eq!(item, Some(3));
}

#[tokio::test(start_paused = true)]
async fn what_was_due_first_comes_first_even_when_nobody_looked() {
    let queue = queue();
    queue.add_after(1, milliseconds(10));
    advance(milliseconds(20)).await;
    queue.add(2);
    assert_eq!((queue.get().await, queue.get().await), (Some(1), Some(2)));
}

#[tokio::test(start_paused = true)]
async fn failures_wait_longer_until_forgotten() {
    let queue = queue();
    let mut waits = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        queue.add_rate_limited(1);
        queue.get().await;
        queue.done(&1);
        waits.push(start.elapsed().as_millis());
    }
    assert_eq!(waits, [5, 10, 20, 40, 80]);
    assert_eq!((queue.failures(&1), queue.failures(&2)), (5, 0));
    queue.forget(&1);
    let start = Instant::now();
    queue.add_rate_limited(1);
    queue.get().await;
    assert_eq!(start.elapsed().as_millis(), 5);
}

#[tokio::test(start_paused = true)]
async fn all_items_together_keep_to_the_overall_rate() {
    let limits = RateLimits { overall_rate: 10.0, overall_burst: 2, ..RateLimits::default() };
    let queue = WorkQueue::new("test", limits, &Metrics::new());
    let start = Instant::now();
    (0..4).for_each(|item| queue.add_rate_limited(item));
    let mut times = Vec::new();
    for _ in 0..4 {
        queue.get().await;
        times.push(start.elapsed().as_millis());
    }
    assert_eq!(times, [5, 5, 100, 200]);
}

#[tokio::test(start_paused = true)]
async fn shutting_down_hands_out_the_rest_and_then_ends() {
    let queue = queue();
    queue.add(1);
    queue.add_after(2, milliseconds(5));
    queue.shut_down();
    queue.add(3);
    queue.add_after(3, milliseconds(5));
    assert_eq!(queue.get().await, Some(1));
    advance(Duration::from_secs(1)).await;
    assert_eq!(queue.get().await, None);
}

#[tokio::test(start_paused = true)]
async fn waiters_learn_of_the_end() {
    let queue = queue();
    let (first, second, ()) = tokio::join!(queue.get(), queue.get(), async { queue.shut_down() });
    assert_eq!((first, second), (None, None));
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_the_queued_and_the_repeated() {
    let queue = queue();
    queue.add(1);
    queue.add(2);
    let worked = Mutex::new(Vec::new());
    let first = queue.get().await.unwrap();
    queue.add(first);
    let worker = async {
        tokio::time::sleep(milliseconds(30)).await;
        worked.lock().push(first);
        queue.done(&first);
        while let Some(item) = queue.get().await {
            tokio::time::sleep(milliseconds(30)).await;
            worked.lock().push(item);
            queue.done(&item);
        }
    };
    let drained = async {
        queue.shut_down_and_drain().await;
        worked.lock().clone()
    };
    let ((), drained) = tokio::join!(worker, drained);
    assert_eq!(drained, [1, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_second_shut_down_ends_the_drain() {
    let queue = queue();
    queue.add(1);
    tokio::join!(queue.shut_down_and_drain(), async { queue.shut_down() });
}

#[tokio::test(start_paused = true)]
async fn metrics_follow() {
    let metrics = Metrics::new();
    let queue = WorkQueue::new("machines", RateLimits::default(), &metrics);
    queue.add(1);
    queue.add(2);
    queue.add(2);
    queue.add_after(3, Duration::from_hours(1));
    advance(Duration::from_secs(2)).await;
    queue.get().await;
    advance(Duration::from_secs(3)).await;
    let text = metrics.text().unwrap();
    for (name, value) in [
        ("workqueue_depth", "1"),
        ("workqueue_adds_total", "2"),
        ("workqueue_retries_total", "1"),
        ("workqueue_queue_duration_seconds_sum", "2.0"),
        ("workqueue_work_duration_seconds_count", "0"),
        ("workqueue_unfinished_work_seconds", "3.0"),
        ("workqueue_longest_running_processor_seconds", "3.0"),
    ] {
        let line = format!(r#"{name}{{name="machines",controller="machines"}} {value}"#);
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

/// What one may do to a queue.
#[derive(Clone, Debug)]
enum Step {
    Add(u8),
    AddAfter(u8, u64),
    Take,
    Done(usize),
    Pass(u64),
    ShutDown,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..5_u8).prop_map(Step::Add),
        3 => (0..5_u8, 0..50_u64).prop_map(|(item, after)| Step::AddAfter(item, after)),
        4 => Just(Step::Take),
        3 => (0..4_usize).prop_map(Step::Done),
        3 => (0..40_u64).prop_map(Step::Pass),
        1 => Just(Step::ShutDown),
    ];
    proptest::collection::vec(step, 0..60)
}

/// The queue as one would explain it: sets, a list and a table of times.
#[derive(Default)]
struct Model {
    now: u64,
    order: Vec<u8>,
    again: BTreeSet<u8>,
    working: Vec<u8>,
    later: BTreeMap<u8, (u64, u64)>,
    arrivals: u64,
    stopped: bool,
}

impl Model {
    fn add(&mut self, item: u8) {
        if self.stopped {
            return;
        }
        if self.working.contains(&item) {
            self.again.insert(item);
        } else if !self.order.contains(&item) {
            self.order.push(item);
        }
    }

    fn due(&mut self) {
        let mut due: Vec<_> =
            self.later.iter().filter(|(_, at)| at.0 <= self.now).map(|(i, at)| (*at, *i)).collect();
        due.sort_unstable();
        for (_, item) in due {
            self.later.remove(&item);
            self.add(item);
        }
    }

    fn apply(&mut self, step: &Step) -> Option<u8> {
        match *step {
            Step::Add(item) | Step::AddAfter(item, 0) => self.add(item),
            Step::AddAfter(item, after) if !self.stopped => {
                let at = self.now + after;
                if self.later.get(&item).is_none_or(|known| at < known.0) {
                    self.later.insert(item, (at, self.arrivals));
                    self.arrivals += 1;
                }
            }
            Step::AddAfter(..) => {}
            Step::Take => {
                if !self.order.is_empty() {
                    let item = self.order.remove(0);
                    self.working.push(item);
                    return Some(item);
                }
            }
            Step::Done(index) => {
                if index < self.working.len() {
                    let item = self.working.remove(index);
                    if self.again.remove(&item) {
                        self.order.push(item);
                    }
                }
            }
            Step::Pass(time) => {
                self.now += time;
                self.due();
            }
            Step::ShutDown => {
                self.stopped = true;
                self.later.clear();
            }
        }
        None
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_the_model(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (queue, mut model) = (queue(), Model::default());
            for step in &steps {
                let taken = match *step {
                    Step::Add(item) => { queue.add(item); None }
                    Step::AddAfter(item, after) => {
                        queue.add_after(item, milliseconds(after));
                        None
                    }
                    Step::Take => take(&queue).await,
                    Step::Done(index) => {
                        if let Some(item) = model.working.get(index) {
                            queue.done(item);
                        }
                        None
                    }
                    Step::Pass(time) => { advance(milliseconds(time)).await; None }
                    Step::ShutDown => { queue.shut_down(); None }
                };
                prop_assert_eq!(taken, model.apply(step), "{:?}", step);
                prop_assert_eq!(queue.len(), model.order.len());
                let mut working = model.working.clone();
                working.sort_unstable();
                prop_assert_eq!(queue.in_progress(), working);
            }
            Ok(())
        })?;
    }
}
