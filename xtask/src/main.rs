//! Chores: referees, generated files, benchmarks.
//!
//! `cargo xtask <chore>`. This package depends on next to nothing, so that it compiles in
//! seconds on a fresh clone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

mod aws_model;
mod bench;
mod generate;
mod referees;

const USAGE: &str = "\
usage: cargo xtask <chore>

chores:
  bench      measure the API and the controllers, or what is named: api, machines, spot, health/hundred
             (--quick: see that it works; --machines COUNT: other sizes)
  generate   write the generated files anew from the Go modules and the AWS service models
             (--aws: those of AWS alone)
  referees   build the real Kubernetes programs that check us; the last line is their folder
             (--crds: download the definitions of kinds that ours must match;
             --metadata: build the mock of the instance metadata service)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((chore, rest)) => match chore.as_str() {
            "bench" => bench::run(rest),
            "generate" => generate::run(rest),
            "referees" => referees::run(rest),
            "help" | "--help" | "-h" => {
                eprint!("{USAGE}");
                Ok(())
            }
            unknown => bail!("there is no chore named {unknown:?}\n\n{USAGE}"),
        },
        None => bail!("name a chore\n\n{USAGE}"),
    }
}

/// The root of the repository, wherever the command is called from.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}
