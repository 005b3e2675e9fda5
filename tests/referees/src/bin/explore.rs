//! Shows what a server answers to a script or a session, or how two servers differ.
//!
//! `cargo run -p fleetwright-referees -- --real scripts/crud.txt` (or `--embedded`, or neither
//! for a comparison; `--raw` leaves answers as they came). `--twice` compares the real server with
//! itself: what differs then must be normalised or left out of the script.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use fleetwright_referees::compare::{self, Accepted};
use fleetwright_referees::normalise::normalise;
use fleetwright_referees::script::transcript::Entry;
use fleetwright_referees::script::{self, Script};
use fleetwright_referees::session::{self, Session};
use fleetwright_referees::{Cluster, EmbeddedCluster, RealCluster, cluster::binaries};

const USAGE: &str = "usage: explore [--real | --embedded | --twice] [--raw] FILE...";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    match explore().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn explore() -> Result<bool> {
    let (mut real, mut embedded, mut twice, mut raw) = (false, false, false, false);
    let mut files = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--real" => real = true,
            "--embedded" => embedded = true,
            "--twice" => twice = true,
            "--raw" => raw = true,
            option if option.starts_with('-') => bail!("{option} is unknown\n{USAGE}"),
            file => files.push(PathBuf::from(file)),
        }
    }
    if files.is_empty() {
        bail!("name a script or a session\n{USAGE}");
    }
    let both = real == embedded && !twice;
    let mut clusters: Vec<Box<dyn Cluster>> = Vec::new();
    if twice {
        clusters.push(Box::new(RealCluster::start().await?));
    }
    if both || real || twice {
        clusters.push(Box::new(RealCluster::start().await?));
    }
    if both || embedded {
        clusters.push(Box::new(EmbeddedCluster::start().await?));
    }
    let binaries = binaries::referees()?;
    let accepted = Accepted::load()?;
    let mut equal = true;
    for file in &files {
        let is_session = file.parent().is_some_and(|folder| folder.ends_with("sessions"));
        let report = match clusters.as_slice() {
            [one] if is_session => show_session(file, one.as_ref(), &binaries).await?,
            [one] => show_script(file, one.as_ref(), raw).await?,
            [real, embedded] => {
                let difference = if is_session {
                    compare_session(file, real.as_ref(), embedded.as_ref(), &binaries, &accepted)
                        .await?
                } else {
                    compare_script(file, real.as_ref(), embedded.as_ref(), &accepted).await?
                };
                equal &= difference.is_none();
                difference.unwrap_or_else(|| format!("{}: the same\n", file.display()))
            }
            _ => bail!("no server was started"),
        };
        #[expect(clippy::print_stdout, reason = "the answers are this command's output")]
        {
            print!("{report}");
        }
    }
    Ok(equal)
}

async fn show_script(file: &Path, cluster: &dyn Cluster, raw: bool) -> Result<String> {
    let script = Script::load(&resolve(file)?)?;
    let mut entries = script::run(&script, cluster).await?;
    if raw {
        entries.iter_mut().for_each(Entry::select);
    } else {
        normalise(&mut entries);
    }
    let shown: Vec<String> =
        entries.iter().map(|entry| format!("## {}\n{}", entry.title, entry.render())).collect();
    Ok(shown.join("\n"))
}

async fn compare_script(
    file: &Path,
    real: &dyn Cluster,
    embedded: &dyn Cluster,
    accepted: &Accepted,
) -> Result<Option<String>> {
    let script = Script::load(&resolve(file)?)?;
    compare::script(&script, real, embedded, accepted).await
}

async fn show_session(file: &Path, cluster: &dyn Cluster, binaries: &Path) -> Result<String> {
    let session = Session::load(&resolve(file)?)?;
    let outputs = session::run(&session, cluster, binaries).await?;
    let shown: Vec<String> =
        outputs.iter().map(|output| format!("{}\n{}", output.command, output.text)).collect();
    Ok(shown.join("\n"))
}

async fn compare_session(
    file: &Path,
    real: &dyn Cluster,
    embedded: &dyn Cluster,
    binaries: &Path,
    accepted: &Accepted,
) -> Result<Option<String>> {
    let session = Session::load(&resolve(file)?)?;
    compare::session(&session, real, embedded, binaries, accepted).await
}

/// Files are named from here or from the package's folder.
fn resolve(file: &Path) -> Result<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    [file.to_owned(), beside]
        .into_iter()
        .find(|path| path.is_file())
        .with_context(|| format!("{} does not exist", file.display()))
}
