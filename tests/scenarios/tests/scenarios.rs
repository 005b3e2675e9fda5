//! Every scenario, on the embedded server and, where it says so, on the real one.
//!
//! `cargo test -p fleetwright-scenarios -- basics` runs what has `basics` in its name.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, fs};

use fleetwright_scenarios::{Scenario, Server, files, run};
use libtest_mimic::{Arguments, Failed, Trial};
use similar::TextDiff;
use tokio::runtime::Runtime;

/// Runs one scenario and compares it with its file, or writes the file.
fn check(runtime: &Runtime, file: &Path, server: Server) -> Result<(), Failed> {
    let told = |error: anyhow::Error| format!("{error:#}");
    // Read again: the run on the other server may have written it.
    let golden = Scenario::load(file).map_err(told)?;
    let run = runtime.block_on(run(&golden, server)).map_err(told)?;
    let (golden, printed) = (golden.render(), run.printed.render());
    let mut faults = Vec::new();
    if printed != golden {
        if env::var_os("UPDATE_GOLDEN").is_some_and(|value| !value.is_empty()) {
            fs::write(file, &printed)?;
        } else {
            let difference = TextDiff::from_lines(&golden, &printed);
            let difference = difference.unified_diff().header("golden", "printed").to_string();
            faults.push(format!("{difference}\nUPDATE_GOLDEN=1 takes over what was printed"));
        }
    }
    faults.extend(run.failure.map(told));
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
}

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // Scenarios start whole servers, but wait most of the time: two at once are what two cores bear.
    arguments.test_threads = Some(2);
    let runtime = Arc::new(
        tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?,
    );
    let mut trials = Vec::new();
    for file in files()? {
        let scenario = Scenario::load(&file)?;
        let possible = scenario.is_possible();
        let mut add = |server, place: &str| {
            let (runtime, file) = (Arc::clone(&runtime), file.clone());
            let name = format!("{} on the {place} server", scenario.name);
            let trial = Trial::test(name, move || check(&runtime, &file, server));
            trials.push(trial.with_ignored_flag(!possible));
        };
        // The real server first: its answers are the golden ones.
        if scenario.has_real() {
            add(Server::Real, "real");
        }
        add(Server::Embedded, "embedded");
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}
