use std::{io, sync::Arc};

use parking_lot::Mutex;
use tokio::time::sleep;

use super::*;

type Log = Arc<Mutex<Vec<&'static str>>>;

/// Starts a task that ends `after` its stage was told to, and says so.
fn start(tasks: &mut Tasks, log: &Log, stage: Stage, name: &'static str, after: Duration) {
    let log = log.clone();
    tasks.start(stage, name, |stop| async move {
        stop.cancelled().await;
        sleep(after).await;
        log.lock().push(name);
        Ok::<(), io::Error>(())
    });
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[tokio::test(start_paused = true)]
async fn stages_stop_in_order() {
    let (log, stop) = (Log::default(), CancellationToken::new());
    let mut tasks = Tasks::new(stop.clone());
    start(&mut tasks, &log, Stage::Reporting, "metrics", Duration::ZERO);
    start(&mut tasks, &log, Stage::Observation, "informer", seconds(1));
    start(&mut tasks, &log, Stage::Leadership, "lease", Duration::ZERO);
    start(&mut tasks, &log, Stage::Work, "controller", seconds(5));
    start(&mut tasks, &log, Stage::Work, "other", seconds(4));
    stop.cancel();
    assert_eq!(tasks.run(seconds(30)).await, Ok(()));
    assert_eq!(*log.lock(), ["other", "controller", "lease", "informer", "metrics"]);
}

#[tokio::test(start_paused = true)]
async fn time_is_limited_for_all_together() {
    let (log, stop) = (Log::default(), CancellationToken::new());
    let mut tasks = Tasks::new(stop.clone());
    start(&mut tasks, &log, Stage::Work, "quick", seconds(1));
    start(&mut tasks, &log, Stage::Leadership, "stuck", Duration::MAX);
    start(&mut tasks, &log, Stage::Reporting, "behind it", seconds(1));
    stop.cancel();
    let began = Instant::now();
    let failures = tasks.run(seconds(30)).await.unwrap_err();
    assert_eq!(began.elapsed(), seconds(30));
    let mut said: Vec<_> = failures.iter().map(ToString::to_string).collect();
    said.sort();
    assert_eq!(
        said,
        [
            "behind it did not stop in time and was cut off",
            "stuck did not stop in time and was cut off",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_ends_by_itself_ends_all() {
    for (end, said) in [
        ("error", "culprit failed: gone wrong"),
        ("panic", "culprit panicked: on purpose"),
        ("peace", "culprit ended although nobody told it to"),
    ] {
        let (log, stop) = (Log::default(), CancellationToken::new());
        let mut tasks = Tasks::new(stop.clone());
        start(&mut tasks, &log, Stage::Reporting, "bystander", Duration::ZERO);
        tasks.start(Stage::Work, "culprit", |_| async move {
            sleep(seconds(3)).await;
            match end {
                "error" => Err(io::Error::other("gone wrong")),
                "panic" => panic!("on purpose"),
                _ => Ok(()),
            }
        });
        let failures = tasks.run(seconds(30)).await.unwrap_err();
        assert_eq!(failures.iter().map(ToString::to_string).collect::<Vec<_>>(), [said]);
        assert_eq!(*log.lock(), ["bystander"], "stopped in good order");
        assert!(stop.is_cancelled());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_on_the_way_out_is_told_too() {
    let stop = CancellationToken::new();
    let mut tasks = Tasks::new(stop.clone());
    tasks.start(Stage::Work, "controller", |stop| async move {
        stop.cancelled().await;
        Err(io::Error::other("could not finish"))
    });
    stop.cancel();
    let failures = tasks.run(seconds(30)).await.unwrap_err();
    assert_eq!(failures[0].to_string(), "controller failed: could not finish");
}
