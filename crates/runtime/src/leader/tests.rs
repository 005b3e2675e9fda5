use http::Method;
use serde_json::Value;

use super::*;
use crate::fake_api::{FakeApi, Fault};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/system/leases/fleetwright";

fn candidate(api: &FakeApi, name: &str, seed: u64) -> LeaderElection {
    let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
    let settings = LeaderSettings::new("system", "fleetwright", name);
    LeaderElection::new(api.client(), settings, clock, Random::seeded(seed), &Metrics::new())
        .unwrap()
}

fn spec(api: &FakeApi) -> Value {
    api.object(LEASE).unwrap()["spec"].clone()
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

async fn becomes(state: &mut watch::Receiver<LeaderState>, wanted: LeaderState) -> Instant {
    state.wait_for(|state| *state == wanted).await.unwrap();
    Instant::now()
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_renews_and_gives_back() {
    let api = FakeApi::new();
    let (election, stop) = (candidate(&api, "one", 1), CancellationToken::new());
    let leadership = election.leadership();
    let mut state = leadership.state();
    let test = async {
        becomes(&mut state, LeaderState::Leading).await;
        let lease = spec(&api);
        assert_eq!(lease["holderIdentity"], "one");
        assert_eq!(lease["leaseDurationSeconds"], 15);
        assert_eq!(lease["leaseTransitions"], 0);
        sleep(seconds(61)).await;
        let renewed = spec(&api);
        assert_eq!(renewed["acquireTime"], lease["acquireTime"]);
        assert_eq!(renewed["renewTime"], "2026-01-01T00:01:00.000000Z");
        assert!(leadership.is_leading());
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(election.run(stop.clone()), test);
    assert_eq!(ended, Ended::Stopped);
    assert!(!leadership.is_leading());
    let lease = spec(&api);
    assert_eq!((&lease["holderIdentity"], &lease["leaseDurationSeconds"]), (&"".into(), &1.into()));
    let reads = api.requests().iter().filter(|line| line.starts_with("GET")).count();
    assert_eq!(reads, 2, "one to begin with, one to give it back");
}

#[tokio::test(start_paused = true)]
async fn the_second_follows_at_once_when_the_first_gives_back() {
    let api = FakeApi::new();
    let (one, two) = (candidate(&api, "one", 1), candidate(&api, "two", 2));
    let (stop_one, stop_two) = (CancellationToken::new(), CancellationToken::new());
    let (mut state_one, mut state_two) = (one.leadership().state(), two.leadership().state());
    let test = async {
        becomes(&mut state_one, LeaderState::Leading).await;
        becomes(&mut state_two, LeaderState::Waiting { leader: Some("one".into()) }).await;
        sleep(seconds(120)).await;
        assert_eq!(*state_two.borrow(), LeaderState::Waiting { leader: Some("one".into()) });
        stop_one.cancel();
        let start = Instant::now();
        let took = becomes(&mut state_two, LeaderState::Leading).await - start;
        assert!(took <= Duration::from_millis(4400), "{took:?}");
        assert_eq!(spec(&api)["leaseTransitions"], 1);
        stop_two.cancel();
    };
    tokio::join!(one.run(stop_one.clone()), two.run(stop_two.clone()), test);
}

#[tokio::test(start_paused = true)]
async fn the_second_waits_a_whole_lease_when_the_first_falls_silent() {
    let api = FakeApi::new();
    let (one, two) = (candidate(&api, "one", 1), candidate(&api, "two", 2));
    let stop = CancellationToken::new();
    let (mut state_one, mut state_two) = (one.leadership().state(), two.leadership().state());
    let test = async {
        tokio::select! {
            biased;
            _ = one.run(stop.clone()) => {}
            _ = becomes(&mut state_one, LeaderState::Leading) => {}
        }
        // The process has died: its future is gone.
        let start = Instant::now();
        let took = becomes(&mut state_two, LeaderState::Leading).await - start;
        assert!(took >= seconds(15) && took <= seconds(20), "{took:?}");
        stop.cancel();
    };
    let late_two = async {
        sleep(Duration::from_millis(1)).await;
        two.run(stop.clone()).await
    };
    tokio::join!(late_two, test);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_another_may_lead() {
    let api = FakeApi::new();
    let (one, two) = (candidate(&api, "one", 1), candidate(&api, "two", 2));
    let stop = CancellationToken::new();
    let (mut state_one, mut state_two) = (one.leadership().state(), two.leadership().state());
    let leadership = one.leadership();
    let test = async {
        becomes(&mut state_one, LeaderState::Leading).await;
        becomes(&mut state_two, LeaderState::Waiting { leader: Some("one".into()) }).await;
        let start = Instant::now();
        // Four tries of two writes each. Two only reads until the lease is over.
        api.fail(8, Method::PUT, "", Fault::Refuse(500));
        becomes(&mut state_one, LeaderState::Ended(Ended::Lost)).await;
        assert!(!leadership.is_leading());
        assert!(start.elapsed() <= seconds(10), "{:?}", start.elapsed());
        becomes(&mut state_two, LeaderState::Leading).await;
        assert!(start.elapsed() >= seconds(13), "{:?}", start.elapsed());
        stop.cancel();
    };
    let (ended, _, ()) = tokio::join!(one.run(stop.clone()), two.run(stop.clone()), test);
    assert_eq!(ended, Ended::Lost);
    assert_eq!(spec(&api)["holderIdentity"], "", "given back by two, not by one");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_cost_the_lease() {
    let api = FakeApi::new();
    let (election, stop) = (candidate(&api, "one", 1), CancellationToken::new());
    let leadership = election.leadership();
    let mut state = leadership.state();
    let test = async {
        becomes(&mut state, LeaderState::Leading).await;
        for fault in [Fault::LoseAnswer, Fault::Hang, Fault::Refuse(503), Fault::Refuse(409)] {
            api.fail(1, Method::PUT, "", fault);
            sleep(seconds(30)).await;
            assert!(leadership.is_leading());
        }
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(election.run(stop.clone()), test);
    assert_eq!(ended, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_the_first_write_may_be_lost_too() {
    let api = FakeApi::new();
    let (election, stop) = (candidate(&api, "one", 1), CancellationToken::new());
    let mut state = election.leadership().state();
    api.fail(1, Method::POST, "", Fault::LoseAnswer);
    let test = async {
        becomes(&mut state, LeaderState::Leading).await;
        assert_eq!(spec(&api)["leaseTransitions"], 0, "it was ours all the time");
        stop.cancel();
    };
    tokio::join!(election.run(stop.clone()), test);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_sees_another_stops_at_once() {
    let api = FakeApi::new();
    let (election, stop) = (candidate(&api, "one", 1), CancellationToken::new());
    let mut state = election.leadership().state();
    let test = async {
        becomes(&mut state, LeaderState::Leading).await;
        let mut lease = api.object(LEASE).unwrap();
        lease["spec"]["holderIdentity"] = "usurper".into();
        api.put(LEASE.rsplit_once('/').unwrap().0, lease);
        let start = Instant::now();
        becomes(&mut state, LeaderState::Ended(Ended::Lost)).await;
        assert!(start.elapsed() <= seconds(2));
    };
    tokio::join!(election.run(stop.clone()), test);
    assert_eq!(spec(&api)["holderIdentity"], "usurper");
}

/// Never two leaders, whatever answers are lost.
#[test]
fn never_two_leaders() {
    let mut lost = 0;
    for seed in 0..50 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (api, random, stop) =
                (FakeApi::new(), Random::seeded(seed), CancellationToken::new());
            let candidates =
                ["one", "two", "three"].map(|name| candidate(&api, name, random.u64()));
            let leaderships: Vec<_> = candidates.iter().map(LeaderElection::leadership).collect();
            let watch = async {
                for _ in 0..3000 {
                    if random.below(15) == 0 {
                        let method = if random.below(3) == 0 { Method::GET } else { Method::PUT };
                        let fault = match random.below(4) {
                            0 => Fault::LoseAnswer,
                            1 => Fault::Hang,
                            2 => Fault::Refuse(409),
                            _ => Fault::Refuse(500),
                        };
                        api.fail(1, method, "", fault);
                    }
                    sleep(Duration::from_millis(100)).await;
                    let leaders = leaderships.iter().filter(|one| one.is_leading()).count();
                    assert!(leaders <= 1, "{leaders} leaders with seed {seed}");
                }
                stop.cancel();
            };
            let runs = futures::future::join_all(
                candidates.into_iter().map(|candidate| candidate.run(stop.clone())),
            );
            let (ended, ()) = tokio::join!(runs, watch);
            lost += ended.iter().filter(|ended| **ended == Ended::Lost).count();
        });
    }
    assert!(lost > 10, "the lease changed hands only {lost} times");
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let good = LeaderSettings::new("ns", "name", "me");
    assert_eq!(good.check(), Ok(()));
    assert_eq!(good.grace(), seconds(5));
    for (bad, why) in [
        (LeaderSettings { identity: String::new(), ..good.clone() }, InvalidSettings::NoIdentity),
        (
            LeaderSettings { renew_deadline: seconds(15), ..good.clone() },
            InvalidSettings::RenewDeadlineTooLong,
        ),
        (
            LeaderSettings { retry_period: seconds(9), ..good.clone() },
            InvalidSettings::RetryPeriodTooLong,
        ),
        (
            LeaderSettings { lease_duration: Duration::from_millis(9), ..good.clone() },
            InvalidSettings::LeaseDurationTooShort,
        ),
    ] {
        assert_eq!(bad.check(), Err(why));
    }
}

/// Work that ends `after` it was told to; answers when it was told and whether it ended.
async fn work(leadership: Leadership, stop: CancellationToken, after: Duration) -> Option<Instant> {
    let done = leadership.lead(stop, |end| async move {
        end.cancelled().await;
        sleep(after).await;
        Instant::now()
    });
    done.await
}

#[tokio::test(start_paused = true)]
async fn work_is_told_of_a_loss_and_cut_off_after_the_grace() {
    for (after, ends) in [(seconds(4), true), (seconds(6), false)] {
        let api = FakeApi::new();
        let (election, stop) = (candidate(&api, "one", 1), CancellationToken::new());
        let leadership = election.leadership();
        api.fail(1000, Method::PUT, "", Fault::Hang);
        let (ended, done) =
            tokio::join!(election.run(stop.clone()), work(leadership.clone(), stop.clone(), after));
        assert_eq!((ended, done.is_some()), (Ended::Lost, ends));
        assert!(work(leadership, stop, after).await.is_none(), "it leads no more");
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_is_stopped_in_good_order_has_all_the_time_it_needs() {
    let api = FakeApi::new();
    let (election, stop_work) = (candidate(&api, "one", 1), CancellationToken::new());
    let (leadership, stop) = (election.leadership(), CancellationToken::new());
    let working = async {
        let done = work(leadership, stop_work.clone(), seconds(60)).await;
        stop.cancel();
        done
    };
    let stopping = async {
        sleep(seconds(10)).await;
        stop_work.cancel();
    };
    let (ended, done, ()) = tokio::join!(election.run(stop.clone()), working, stopping);
    assert_eq!(ended, Ended::Stopped);
    assert!(done.is_some());
}
