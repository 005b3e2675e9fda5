//! Runs every behaviour table. The summary is the last line.

use std::io;
use std::process::ExitCode;

use fleetwright_cases::harness::{Harness, default_folder};
use fleetwright_cases::{pending, runners};

fn main() -> anyhow::Result<ExitCode> {
    // Flags such as `--nocapture` are libtest's; there is nothing to capture here.
    let filters = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let harness =
        Harness { runners: runners::all(), excuses: pending::parse(pending::LIST)?, filters };
    let count = harness.run(&default_folder(), &mut io::stdout().lock())?;
    Ok(if count.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
