//! Measures the embedded API and the controllers of machines, and writes `bench/REPORT.md`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Runs the chore: builds everything with optimisation, which only this chore does, and
/// measures. What it does not know itself is for the benchmark: names and sizes.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let quick = arguments.iter().any(|argument| argument == "--quick");
    crate::referees::run(&[])?;
    let programs = build()?;
    let folder = crate::repository().join("bench");
    let mut bench = Command::new(programs.join("fleetwright-bench"));
    bench.arg("run").current_dir(&folder);
    bench.arg("--fleetwright").arg(programs.join("fleetwright"));
    // A quick run means nothing, and leaves the report alone.
    let report = if quick { "out/quick.md" } else { "REPORT.md" };
    bench.arg("--report").arg(folder.join(report));
    bench.arg("--scratch").arg(folder.join("out"));
    bench.args(arguments);
    let status = bench.status().context("cannot run the benchmark")?;
    ensure!(status.success(), "the benchmark failed; its message is above");
    Ok(())
}

/// Builds the server and the client, and returns the folder that holds them.
fn build() -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--package", "fleetwright", "--package", "fleetwright-bench"])
        .current_dir(crate::repository())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the benchmark does not build; the compiler's message is above");
    // This program is in `debug`, beside `release`.
    let own = env::current_exe().context("cannot find this program's own path")?;
    let release = own.ancestors().nth(2).map(|target| target.join("release"));
    release.filter(|folder| folder.is_dir()).context("cannot find the folder of the release build")
}
