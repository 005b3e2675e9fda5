//! Measures the embedded API against kube-apiserver and etcd, and writes `bench/REPORT.md`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Runs the chore: builds everything with optimisation, which only this chore does, and
/// measures.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let quick = arguments == ["--quick"];
    ensure!(quick || arguments.is_empty(), "usage: cargo xtask bench [--quick]");
    crate::referees::run(&[])?;
    let programs = build()?;
    let folder = crate::repository().join("bench");
    let mut bench = Command::new(programs.join("fleetwright-bench"));
    bench.arg("run").current_dir(&folder);
    bench.arg("--fleetwright").arg(programs.join("fleetwright"));
    bench.arg("--report").arg(folder.join("REPORT.md"));
    bench.arg("--scratch").arg(folder.join("out"));
    if quick {
        bench.arg("--quick");
    }
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
