//! A tenth of a fleet turns bad at once on a real server, beside clients that delete as many.

use std::{fmt::Write, path::Path, time::Duration};

use anyhow::{Result, ensure};
use fleetwright_referees::Cluster;

use super::sick::{self, Deletions, LOOKS_AFTER, Patient, Taken};
use crate::machines::{
    Scale,
    audit::Audit,
    ground::{Ground, IN_FLIGHT, ServedCloud},
    load::Load,
    program::{Program, USER},
    traffic::{Counts, Traffic, in_words},
    verdict,
};

/// The aim: this share of what a serial controller takes.
const WANTED: f64 = 0.2;
/// What a serial controller takes for a hundred, as the aim was set.
const SERIAL_PER_HUNDRED: f64 = 2.0;
/// The controller of health checks and no other.
const ALONE: &str = "controllers=machinehealthcheck";
/// The process follows another one, which nobody waits for.
const NO_ELECTION: &str = "leaderElection.enabled=false";

/// Who deletes Machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Serial,
    Concurrent,
    Alone,
    Whole,
}

const SUBJECTS: [Subject; 4] =
    [Subject::Serial, Subject::Concurrent, Subject::Alone, Subject::Whole];

/// Measures, and says what came out.
pub(crate) async fn measure(scale: &Scale, fleetwright: &Path) -> Result<String> {
    let (count, bad) = (scale.set, scale.set / 10);
    let mut audit = Audit::of(USER)?;
    let ground = Ground::start(audit.flags()).await?;
    eprintln!("bench: bringing up {count} Machines");
    revive(&ground, count, true).await?;
    let cloud = ground.serve_cloud().await?;
    let mut bench = Bench { scale, fleetwright, bad, ground, cloud, audit: &mut audit, checks: 0 };
    let load = Load::begin(&bench.ground.processes())?;
    let mut times = Vec::new();
    let mut requests = Counts::new();
    for round in 0..scale.rounds {
        for place in 0..SUBJECTS.len() {
            // Each takes its turn in each place.
            let subject = SUBJECTS[(place + round) % SUBJECTS.len()];
            let (taken, sent) = bench.round(subject).await?;
            eprintln!("bench: {subject:?}: {taken:?}");
            times.push((subject, taken));
            if subject == Subject::Alone {
                requests = sent;
            }
        }
        revive(&bench.ground, count, false).await?;
    }
    report(scale, &times, &requests, &load.end()?)
}

/// Brings up what is missing of the fleet.
async fn revive(ground: &Ground, count: usize, new: bool) -> Result<()> {
    let traffic = Traffic::default();
    let controllers = ground.controllers("*", &traffic).await?;
    if new {
        ground.provision(count, &traffic).await?;
    } else {
        ground.settled(count, &traffic).await?;
    }
    ground.join(count, &traffic).await?;
    controllers.stop().await
}

struct Bench<'a> {
    scale: &'a Scale,
    fleetwright: &'a Path,
    bad: usize,
    ground: Ground,
    cloud: ServedCloud,
    audit: &'a mut Audit,
    /// A check of its own for each round: repairs that are repeated wait.
    checks: usize,
}

impl Bench<'_> {
    /// One subject deletes. Says what the program asked for meanwhile.
    async fn round(&mut self, subject: Subject) -> Result<(Taken, Counts)> {
        self.checks += 1;
        let name = format!("round-{}", self.checks);
        let user = self.ground.user.clone();
        let check = sick::check(&name, self.scale.bad_for, "100%");
        let patients = sick::choose(&user, self.bad).await?;
        let done = match subject {
            Subject::Serial | Subject::Concurrent => {
                sick::make(&user, check).await?;
                let in_flight = if subject == Subject::Serial { 1 } else { IN_FLIGHT };
                let client = self.ground.client(&Traffic::default()).await?;
                // The first request is not the one that connects.
                sick::choose(&client, 1).await?;
                (sick::delete(&client, &patients, in_flight).await?, Counts::new())
            }
            Subject::Alone | Subject::Whole => {
                let all = [NO_ELECTION, ALONE];
                let settings = if subject == Subject::Alone { &all[..] } else { &all[..1] };
                let access = self.ground.cluster.access();
                let program = Program::start(self.fleetwright, access, &self.cloud.url, settings)?;
                program.settle(self.audit).await?;
                sick::make(&user, check).await?;
                let total = self.fleet().await?;
                sick::wait_for(&user, &name, (total, "True")).await?;
                self.strike(&patients).await?
            }
        };
        sick::remove(&user, &name).await?;
        Ok(done)
    }

    /// Machines, with those that go.
    async fn fleet(&self) -> Result<usize> {
        crate::machines::ground::machines(&self.ground.user).await
    }

    /// All turn bad, and the check finds out when their time is over.
    async fn strike(&mut self, patients: &[Patient]) -> Result<(Taken, Counts)> {
        let (user, clock) = (&self.ground.user, &self.ground.clock);
        let deletions = Deletions::of(user, patients).await?;
        let since = sick::this_second(clock);
        sick::turn(user, patients, "False", since).await?;
        let due = since + self.scale.bad_for + LOOKS_AFTER;
        ensure!(clock.now() < due, "the Nodes could not be written in time");
        self.audit.news()?;
        let taken = deletions.all(sick::moment(clock, due)).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok((taken, self.audit.news()?))
    }
}

fn report(
    scale: &Scale,
    times: &[(Subject, Taken)],
    requests: &Counts,
    load: &str,
) -> Result<String> {
    let (count, bad) = (scale.set, scale.set / 10);
    let median = |subject: Subject, of: fn(&Taken) -> Duration| {
        let all = times.iter().filter(|(who, _)| *who == subject).map(|(_, taken)| of(taken));
        crate::machines::median(all.collect()).as_secs_f64()
    };
    let mut text = String::new();
    writeln!(
        text,
        "## Health check: {bad} of {count} Nodes turn bad at once

On kube-apiserver with etcd; `fleetwright run` is a process with its usual settings. The Nodes are
told to be bad since the same second, with a timeout of {} s, and a check looks again one second after a
timeout has passed: from that moment to the last of {bad} Machines that a watch shows with a
`deletionTimestamp`. The plain clients, with the same HTTP client, send the same deletions, one after the
other or {IN_FLIGHT} at a time, from the first request to the last answer, while nothing else runs. The median of {} rounds that take turns. {load}

| | first Machine, ms | last Machine, ms | of the serial client's time |
|---|---|---|---|",
        scale.bad_for.as_secs(),
        scale.rounds,
    )?;
    let serial = median(Subject::Serial, |taken| taken.last);
    for subject in SUBJECTS {
        let name = match subject {
            Subject::Serial => "plain client, serial (reference)",
            Subject::Concurrent => "plain client, concurrent",
            Subject::Alone => "`fleetwright run`, health checks alone",
            Subject::Whole => {
                "`fleetwright run`, all controllers, which replace and drain meanwhile"
            }
        };
        let first = median(subject, |taken| taken.first);
        let last = median(subject, |taken| taken.last);
        writeln!(
            text,
            "| {name} | {:.0} | {:.0} | {:.2} |",
            1e3 * first,
            1e3 * last,
            last / serial
        )?;
    }
    let alone = median(Subject::Alone, |taken| taken.last);
    let controller = SERIAL_PER_HUNDRED * bad as f64 / 100.0;
    writeln!(
        text,
        "\nAim: one fifth of the serial client: {}; one fifth of the {controller:.1} s of a serial controller: {}.
Requests of the check, and the second after it: {}.",
        verdict(alone <= WANTED * serial),
        verdict(alone <= WANTED * controller),
        in_words(requests),
    )?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_compares_medians_with_the_serial_client() {
        let taken = |last: u64| Taken {
            first: Duration::from_millis(5),
            last: Duration::from_millis(last),
        };
        let times = [
            (Subject::Serial, taken(900)),
            (Subject::Serial, taken(1000)),
            (Subject::Serial, taken(9000)),
            (Subject::Concurrent, taken(500)),
            (Subject::Alone, taken(150)),
            (Subject::Whole, taken(2000)),
        ];
        let scale = Scale { set: 1000, ..Scale::new(true) };
        let text = report(&scale, &times, &Counts::new(), "").unwrap();
        assert!(text.contains("| plain client, serial (reference) | 5 | 1000 | 1.00 |"), "{text}");
        assert!(text.contains("health checks alone | 5 | 150 | 0.15 |"), "{text}");
        assert!(text.contains("serial client: met; one fifth of the 2.0 s"), "{text}");
    }
}
