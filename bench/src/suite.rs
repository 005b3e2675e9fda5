//! All benchmarks, one after the other, and the report.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use fleetwright_clock::Clock;
use fleetwright_referees::cluster::binaries;
use tokio::time::Instant;

use crate::machines::Bench;
use crate::report::{self, Surroundings};
use crate::results::{Figures, percentile};
use crate::section;
use crate::servers::Subject;

#[derive(clap::Args)]
pub(crate) struct SuiteArguments {
    /// The fleetwright program.
    #[arg(long)]
    fleetwright: PathBuf,
    /// Where the report goes.
    #[arg(long)]
    report: PathBuf,
    /// A folder for data and raw figures, on the disk that is to be measured.
    #[arg(long)]
    scratch: PathBuf,
    /// Take short runs: to see that everything works, not for figures.
    #[arg(long)]
    quick: bool,
    /// This many Machines in the benchmarks of machines instead of the usual sizes.
    #[arg(long, value_name = "COUNT")]
    machines: Option<usize>,
    /// Run only what has one of these in its name: `api`, `machines/replicas`, ...
    filters: Vec<String>,
}

/// The benchmark of the API.
const API: &str = "api";

/// Runs the benchmarks that are asked for, and writes each one's part of the report.
pub(crate) fn run(arguments: &SuiteArguments) -> Result<()> {
    let SuiteArguments { scratch, filters, .. } = arguments;
    fs::create_dir_all(scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let wanted = |name: &str| {
        filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
    };
    let benches: Vec<Bench> =
        Bench::ALL.into_iter().filter(|bench| wanted(&bench.name())).collect();
    let names: Vec<String> = Bench::ALL.iter().map(|bench| bench.name()).collect();
    ensure!(
        wanted(API) || !benches.is_empty(),
        "nothing is named {}: there are {API}, {}",
        filters.join(" or "),
        names.join(", ")
    );
    let surroundings = surroundings(arguments)?;
    if wanted(API) {
        put(arguments, API, &api(arguments, &surroundings)?)?;
    }
    for bench in benches {
        eprintln!("bench: {}", bench.name());
        let measured = machines(bench, arguments)?;
        let place = measured.find("\n\n").map_or(measured.len(), |end| end + 2);
        let (title, rest) = measured.split_at(place);
        let part = format!("{title}{}\n\n{rest}", report::one_line(&surroundings));
        eprintln!("{part}");
        put(arguments, &bench.name(), &part)?;
    }
    eprintln!("bench: the report is in {}", arguments.report.display());
    Ok(())
}

/// Writes a part of the report.
fn put(arguments: &SuiteArguments, name: &str, part: &str) -> Result<()> {
    let path = &arguments.report;
    let report = fs::read_to_string(path).unwrap_or_default();
    fs::write(path, section::put(&report, name, part))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Measures all subjects of the API.
fn api(arguments: &SuiteArguments, surroundings: &Surroundings) -> Result<String> {
    let scratch = &arguments.scratch;
    let mut all = Vec::new();
    for subject in Subject::ALL {
        let text = measure(subject, arguments)?;
        fs::write(scratch.join(format!("{}.json", subject.argument())), &text)
            .with_context(|| format!("cannot write to {}", scratch.display()))?;
        all.push(serde_json::from_str::<Figures>(&text).context("the figures cannot be read")?);
    }
    report::write(surroundings, &all)
}

/// Measures one subject in a process of its own.
fn measure(subject: Subject, arguments: &SuiteArguments) -> Result<String> {
    apart(arguments, &["measure", subject.argument()])
}

/// Runs a benchmark of machines in a process of its own.
fn machines(bench: Bench, arguments: &SuiteArguments) -> Result<String> {
    let count = arguments.machines.map(|count| count.to_string());
    let mut words = vec!["machines", bench.argument()];
    if let Some(count) = &count {
        words.extend(["--machines", count]);
    }
    apart(arguments, &words)
}

/// Runs this program again and returns what it prints.
fn apart(arguments: &SuiteArguments, words: &[&str]) -> Result<String> {
    let own = env::current_exe().context("cannot find this program's own path")?;
    let mut command = Command::new(own);
    command.args(words).arg("--fleetwright").arg(&arguments.fleetwright);
    if arguments.quick {
        command.arg("--quick");
    }
    // All data go to the disk that is to be measured.
    command.env("TMPDIR", &arguments.scratch).stderr(Stdio::inherit());
    let output = command.output().context("cannot run this program again")?;
    ensure!(output.status.success(), "{} failed", words.join(" "));
    String::from_utf8(output.stdout).context("the figures are not text")
}

fn surroundings(arguments: &SuiteArguments) -> Result<Surroundings> {
    let referees = binaries::referees()?;
    let processor = line_of("/proc/cpuinfo", "model name");
    let memory = line_of("/proc/meminfo", "MemTotal");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().context("cannot count the cores")?.get();
    let syncs = sync_times(&arguments.scratch)?;
    Ok(Surroundings {
        date: Clock::system().now().to_string().chars().take(10).collect(),
        quick: arguments.quick,
        cores,
        machine: format!("{processor}, {cores} cores, {memory}, Linux {}", kernel.trim()),
        sync: syncs,
        fleetwright: format!(
            "{} ({})",
            said_by(&arguments.fleetwright, "version"),
            said_by(Path::new("git"), "rev-parse --short HEAD")
        ),
        apiserver: said_by(&referees.join("kube-apiserver"), "--version"),
        etcd: said_by(&referees.join("etcd"), "--version"),
    })
}

/// What follows the colon after a name in a file of `/proc`.
fn line_of(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value).trim().to_owned()
}

/// The first line that a program prints.
fn said_by(program: &Path, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split(' ')).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().next().unwrap_or("unknown").to_owned()
}

/// How long the disk takes to make 4 KB durable: the median and the 99th percentile.
fn sync_times(folder: &Path) -> Result<(std::time::Duration, std::time::Duration)> {
    use std::io::Write;
    let path = folder.join("sync-probe");
    let mut file = fs::File::create(&path).context("cannot write to the scratch folder")?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let begin = Instant::now();
        file.write_all(&[0; 4096]).context("cannot write to the scratch folder")?;
        file.sync_data().context("cannot sync the scratch folder")?;
        times.push(begin.elapsed());
    }
    fs::remove_file(&path).context("cannot remove from the scratch folder")?;
    times.sort_unstable();
    Ok((percentile(&times, 50), percentile(&times, 99)))
}
