//! The report: figures beside those of the reference, and what limits them.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::measure::CONCURRENCIES;
use crate::network::CONNECTIONS;
use crate::operations;
use crate::results::{Cpu, Figures, Operation, percentile};
use crate::servers::Subject;

/// Where and with what the figures were taken.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) date: String,
    pub(crate) quick: bool,
    pub(crate) cores: usize,
    pub(crate) machine: String,
    /// How long the disk takes to make 4 KB durable: median, 99th percentile.
    pub(crate) sync: (Duration, Duration),
    pub(crate) fleetwright: String,
    pub(crate) apiserver: String,
    pub(crate) etcd: String,
}

/// Where and with what, in a line.
pub(crate) fn one_line(at: &Surroundings) -> String {
    let quick = if at.quick { "**A quick run: its figures mean nothing.** " } else { "" };
    format!(
        "{quick}{}: {}, {}, {}; {}.",
        at.date, at.fleetwright, at.apiserver, at.etcd, at.machine
    )
}

/// What the issue asks for: throughput of durable writes and reads over TLS, and memory.
const WANTED_RATE: f64 = 5.0;
const WANTED_MEMORY: f64 = 0.2;
/// A machine with this share of its processors in use has none to spare.
const USED_UP: f64 = 0.9;

/// Writes the report. The first figures are those of the reference.
pub(crate) fn write(surroundings: &Surroundings, all: &[Figures]) -> Result<String> {
    let reference = all.first().context("nothing was measured")?;
    let mut text = String::new();
    introduction(&mut text, surroundings, all)?;
    aims(&mut text, all)?;
    table(
        &mut text,
        "Throughput",
        "Requests per second; in brackets the ratio to the reference.",
        all,
        |ours| {
            let ratio = matching(reference, ours).map_or(0.0, |theirs| ours.rate() / theirs.rate());
            format!("{} ({})", number(ours.rate()), times(ratio))
        },
    )?;
    table(&mut text, "Latency", "p50 / p99 in milliseconds.", all, |ours| {
        format!("{} / {}", milliseconds(ours.p50), milliseconds(ours.p99))
    })?;
    fan_out(&mut text, all)?;
    footprint(&mut text, all)?;
    limits(&mut text, surroundings, all)?;
    Ok(text)
}

fn introduction(text: &mut String, at: &Surroundings, all: &[Figures]) -> Result<()> {
    let (stored, sent) = all.first().map(|figures| figures.machine_bytes).unwrap_or_default();
    let quick = if at.quick {
        "\n**A quick run: it shows that everything works. Its figures mean nothing.**\n"
    } else {
        ""
    };
    writeln!(
        text,
        "## The embedded API\n{quick}
The same client with the same concurrency drives kube-apiserver with etcd (the reference),
`fleetwright up` with its data on the disk, `fleetwright up --in-memory`, and the server as a service
in the client's own process.

- {}: {}, {}, {}
- {}
- making 4 KB durable takes this disk {} ms (p50), {} ms (p99)
- other processes took {:.2} cores on average while figures were taken
- HTTP/2 over TLS with client certificates on {CONNECTIONS} connections, JSON, no compression; one
  client thread; kube-apiserver runs without a controller manager, etcd syncs as it does by default
- a Machine is a custom resource with a typed schema and rules: {sent} bytes sent, {stored} stored
- a ConfigMap has 1 KB of data

To reproduce: `cargo xtask bench api` on a machine that does nothing else (`--quick` to see that it
works).
",
        at.date,
        at.fleetwright,
        at.apiserver,
        at.etcd,
        at.machine,
        milliseconds(at.sync.0),
        milliseconds(at.sync.1),
        others(all),
    )?;
    Ok(())
}

/// The cores that neither the server nor the client took.
fn others(all: &[Figures]) -> f64 {
    let operations = || all.iter().flat_map(|figures| &figures.operations);
    let total: Duration = operations().map(|operation| operation.window).sum();
    let other: Duration = operations()
        .map(|Operation { cpu, .. }| cpu.machine.saturating_sub(cpu.server + cpu.client))
        .sum();
    ratio(other, total)
}

fn aims(text: &mut String, all: &[Figures]) -> Result<()> {
    let [reference, durable, ..] = all else { return Ok(()) };
    let verdict = |met: bool| if met { "met" } else { "**not met**" };
    writeln!(text, "### Aims\n\n| aim | figure | |\n|---|---|---|")?;
    for name in operations::NAMES {
        let most = CONCURRENCIES.into_iter().max().unwrap_or_default();
        let of = |figures: &Figures| {
            let found = figures.operations.iter().find(|o| o.name == name && o.concurrency == most);
            found.map_or(0.0, Operation::rate)
        };
        let ratio = of(durable) / of(reference);
        writeln!(
            text,
            "| {name}, {most} at a time, durable: {WANTED_RATE} times the throughput | {} | {} |",
            times(ratio),
            verdict(ratio >= WANTED_RATE)
        )?;
    }
    if let (Some(theirs), Some(ours)) = (&reference.memory, &durable.memory) {
        let ratio = ours.full as f64 / theirs.full as f64;
        writeln!(
            text,
            "| memory with {} Machines, durable: {WANTED_MEMORY} times | {ratio:.2} | {} |",
            ours.objects,
            verdict(ratio <= WANTED_MEMORY)
        )?;
    }
    writeln!(text)?;
    Ok(())
}

/// A table with a row for each operation and concurrency and a column for each subject.
fn table(
    text: &mut String,
    title: &str,
    explanation: &str,
    all: &[Figures],
    cell: impl Fn(&Operation) -> String,
) -> Result<()> {
    writeln!(text, "### {title}\n\n{explanation}\n")?;
    heading(text, &["operation", "at a time"], all)?;
    let rows = all.first().map(|figures| figures.operations.as_slice()).unwrap_or_default();
    for name in operations::NAMES {
        for row in rows.iter().filter(|row| row.name == name) {
            write!(text, "| {} | {} |", row.name, row.concurrency)?;
            for figures in all {
                let shown = matching(figures, row).map_or_else(String::new, &cell);
                write!(text, " {shown} |")?;
            }
            writeln!(text)?;
        }
    }
    writeln!(text)?;
    Ok(())
}

fn fan_out(text: &mut String, all: &[Figures]) -> Result<()> {
    let Some(theirs) = all.first().and_then(|figures| figures.fan_out.as_ref()) else {
        return Ok(());
    };
    writeln!(
        text,
        "### Watch fan-out\n\n{} watchers of Machines. Rate: {} writes by 4 writers at full speed, from the \
         first write to the last event.\nLatency: {} writes a second, from the start of a write to \
         the arrival of its event, p50 / p99 in milliseconds.\n",
        theirs.watchers, theirs.writes, theirs.paced_writes_per_second
    )?;
    heading(text, &[""], all)?;
    let mut row = |name: &str, cell: &dyn Fn(&crate::results::FanOut) -> String| -> Result<()> {
        write!(text, "| {name} |")?;
        for figures in all {
            write!(text, " {} |", figures.fan_out.as_ref().map_or_else(String::new, cell))?;
        }
        writeln!(text)?;
        Ok(())
    };
    row("events delivered per second", &|ours| {
        format!("{} ({})", number(ours.rate()), times(ours.rate() / theirs.rate()))
    })?;
    row("latency of delivery", &|ours| {
        format!("{} / {}", milliseconds(ours.p50), milliseconds(ours.p99))
    })?;
    row("events not delivered within a minute", &|ours| {
        (ours.watchers * ours.writes).saturating_sub(ours.delivered).to_string()
    })?;
    row("watches ended by the server and resumed", &|ours| ours.resumed.to_string())?;
    writeln!(text)?;
    Ok(())
}

fn footprint(text: &mut String, all: &[Figures]) -> Result<()> {
    let Some(theirs) = all.first().and_then(|figures| figures.memory.as_ref()) else {
        return Ok(());
    };
    writeln!(
        text,
        "### Memory and time to ready\n\nResident memory (VmRSS; kube-apiserver and etcd together; in \
         process with the client) empty and\nwith {} Machines after a rest. Time from the start of \
         the process to the first successful answer,\nmedian of {} starts.\n",
        theirs.objects,
        all.iter().map(|figures| figures.ready.len()).max().unwrap_or_default(),
    )?;
    heading(text, &[""], all)?;
    let cells = |text: &mut String, name: &str, cell: &dyn Fn(&Figures) -> String| -> Result<()> {
        write!(text, "| {name} |")?;
        for figures in all {
            write!(text, " {} |", cell(figures))?;
        }
        writeln!(text)?;
        Ok(())
    };
    let megabytes = |bytes: u64| format!("{:.0} MB", bytes as f64 / 1e6);
    cells(text, "memory, empty", &|figures| {
        figures.memory.as_ref().map_or_else(String::new, |memory| megabytes(memory.empty))
    })?;
    cells(text, "memory, full", &|figures| {
        figures.memory.as_ref().map_or_else(String::new, |memory| {
            let ratio = memory.full as f64 / theirs.full as f64;
            format!("{} ({ratio:.2}×)", megabytes(memory.full))
        })
    })?;
    let their_ready = all.first().map(ready).unwrap_or_default();
    cells(text, "time to ready", &|figures| {
        let ready = ready(figures);
        format!("{} ms ({:.3}×)", ready.as_millis(), ratio(ready, their_ready))
    })?;
    writeln!(text)?;
    Ok(())
}

fn ready(figures: &Figures) -> Duration {
    let mut times = figures.ready.clone();
    times.sort_unstable();
    percentile(&times, 50)
}

fn limits(text: &mut String, at: &Surroundings, all: &[Figures]) -> Result<()> {
    writeln!(
        text,
        "### What limits each\n\nAt the highest concurrency. Cores are processor time over time passed; the \
         client's share is of what\nserver and client took together, and unknown in process.\n\n\
         | operation | subject | server cores | client cores | client's share | server time per request | limit |\n\
         |---|---|---|---|---|---|---|"
    )?;
    let most = CONCURRENCIES.into_iter().max().unwrap_or_default();
    let mut row =
        |name: &str, subject: Subject, cpu: Cpu, window: Duration, count: usize| -> Result<()> {
            let per_request = cpu.server.as_secs_f64() * 1e6 / count.max(1) as f64;
            let (client, share) = if subject == Subject::InProcess {
                (String::new(), String::new())
            } else {
                let share = ratio(cpu.client, cpu.client + cpu.server);
                (format!("{:.2}", ratio(cpu.client, window)), format!("{:.0} %", share * 100.0))
            };
            writeln!(
                text,
                "| {name} | {} | {:.2} | {client} | {share} | {per_request:.0} µs | {} |",
                subject.title(),
                ratio(cpu.server, window),
                limit(at, name, subject, cpu, window)
            )?;
            Ok(())
        };
    for name in operations::NAMES {
        for figures in all {
            let found = |o: &&Operation| o.name == name && o.concurrency == most;
            if let Some(o) = figures.operations.iter().find(found) {
                row(name, figures.subject, o.cpu, o.window, o.requests)?;
            }
        }
    }
    for figures in all {
        if let Some(fan_out) = &figures.fan_out {
            row(
                "watch (per event)",
                figures.subject,
                fan_out.cpu,
                fan_out.window,
                fan_out.delivered,
            )?;
        }
    }
    Ok(())
}

/// What keeps an operation from being faster, judged by what was used up.
fn limit(at: &Surroundings, name: &str, subject: Subject, cpu: Cpu, window: Duration) -> String {
    let client = ratio(cpu.client, window);
    let server = ratio(cpu.server, window);
    let all = ratio(cpu.machine, window);
    let writes = name.starts_with("create") || name.starts_with("patch");
    if subject != Subject::InProcess && client > USED_UP && client > server {
        "the client, whose one thread is busy".to_owned()
    } else if client + server > USED_UP * at.cores as f64 {
        "the processors, which server and client share".to_owned()
    } else if all > USED_UP * at.cores as f64 {
        "the processors, which other processes use as well".to_owned()
    } else if writes && matches!(subject, Subject::Reference | Subject::Durable) {
        "the disk, which commits wait for".to_owned()
    } else if server > USED_UP {
        "one busy thread of the server".to_owned()
    } else {
        "waiting between client and server".to_owned()
    }
}

fn heading(text: &mut String, first: &[&str], all: &[Figures]) -> Result<()> {
    write!(text, "|")?;
    for title in first.iter().copied().chain(all.iter().map(|figures| figures.subject.title())) {
        write!(text, " {title} |")?;
    }
    writeln!(text, "\n|{}", "---|".repeat(first.len() + all.len()))?;
    Ok(())
}

fn matching<'a>(figures: &'a Figures, row: &Operation) -> Option<&'a Operation> {
    let same = |o: &&Operation| o.name == row.name && o.concurrency == row.concurrency;
    figures.operations.iter().find(same)
}

fn ratio(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { part.as_secs_f64() / whole.as_secs_f64() }
}

fn milliseconds(time: Duration) -> String {
    let time = time.as_secs_f64() * 1e3;
    if time < 10.0 { format!("{time:.2}") } else { format!("{time:.0}") }
}

fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.1}×") } else { format!("{ratio:.0}×") }
}

/// A number with three significant digits and commas.
fn number(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{FanOut, Memory};

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(123.4), "123");
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(milliseconds(Duration::from_micros(1234)), "1.23");
        assert_eq!(times(12.3), "12×");
    }

    fn figures(subject: Subject, requests: usize, memory: u64) -> Figures {
        let cpu = Cpu {
            server: Duration::from_secs(1),
            client: Duration::from_secs(1),
            machine: Duration::from_secs(2),
        };
        let operation = |(name, concurrency): (&str, usize)| Operation {
            name: name.to_owned(),
            concurrency,
            requests,
            window: Duration::from_secs(1),
            p50: Duration::from_millis(1),
            p99: Duration::from_millis(2),
            cpu,
        };
        let pairs = operations::NAMES.into_iter().flat_map(|n| CONCURRENCIES.map(|c| (n, c)));
        Figures {
            subject,
            ready: vec![Duration::from_millis(10)],
            operations: pairs.map(operation).collect(),
            fan_out: Some(FanOut {
                watchers: 100,
                writes: 10,
                delivered: 1000,
                window: Duration::from_secs(1),
                resumed: 0,
                cpu,
                paced_writes_per_second: 20.0,
                p50: Duration::from_millis(1),
                p99: Duration::from_millis(2),
            }),
            memory: Some(Memory { objects: 10, empty: 1, full: memory }),
            machine_bytes: (5000, 4000),
        }
    }

    #[test]
    fn the_aims_are_judged_by_ratios() {
        let surroundings = Surroundings {
            date: "2030-01-01".to_owned(),
            quick: false,
            cores: 2,
            machine: String::new(),
            sync: (Duration::ZERO, Duration::ZERO),
            fleetwright: String::new(),
            apiserver: String::new(),
            etcd: String::new(),
        };
        let reference = || figures(Subject::Reference, 100, 1000);
        let good =
            write(&surroundings, &[reference(), figures(Subject::Durable, 500, 200)]).unwrap();
        assert!(!good.contains("not met"), "{good}");
        let bad =
            write(&surroundings, &[reference(), figures(Subject::Durable, 499, 201)]).unwrap();
        assert_eq!(bad.matches("not met").count(), operations::NAMES.len() + 1, "{bad}");
        assert!(bad.contains("| create Machine | 16 | 100 (1.0×) | 499 (5.0×) |"), "{bad}");
    }
}
