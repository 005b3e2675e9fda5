//! Runs a scenario.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, bail};
use fleetwright_referees::cluster::binaries;
use fleetwright_referees::session::{Printed, Shell, describe};
use fleetwright_referees::{Cluster, RealCluster};
use regex::Regex;

use crate::background::Background;
use crate::scenario::{Block, Part, Program, Scenario, Step};

/// Where `fleetwright up` writes its kubeconfig, from the home folder.
const KUBECONFIG: &str = ".local/share/fleetwright/kubeconfig";

/// Which server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// The one that the scenario itself starts.
    Embedded,
    /// kube-apiserver; takes part where the scenario says `== both` or `== real`.
    Real,
}

/// How a run went.
#[derive(Debug)]
pub struct Run {
    /// The scenario with what was really printed in place of the golden output. What was not
    /// reached, or does not concern the server, is as it was.
    pub printed: Scenario,
    /// Why it ended early.
    pub failure: Option<Error>,
}

/// Runs a scenario.
pub async fn run(scenario: &Scenario, server: Server) -> Result<Run> {
    let shell = shell(scenario)?;
    // Kept until the end: the server ends with the value.
    let _real = match server {
        Server::Embedded => None,
        Server::Real => {
            let cluster = RealCluster::start().await?;
            let path = shell.folder().join(KUBECONFIG);
            fs::create_dir_all(path.parent().context("a path without a folder")?)?;
            fs::copy(&cluster.access().kubeconfig, path).context("cannot copy the kubeconfig")?;
            Some(cluster)
        }
    };
    let mut printed = Output::new(&shell)?;
    let mut background = BTreeMap::new();
    let mut run = Run { printed: scenario.clone(), failure: None };
    for block in &mut run.printed.blocks {
        let concerned = match block.part {
            Part::Both => true,
            Part::Embedded => server == Server::Embedded,
            Part::Real => server == Server::Real,
        };
        let text = if concerned {
            match run_step(block, &shell, &mut background).await {
                Ok(text) => text,
                Err(error) => {
                    run.failure = Some(error.context(format!("at {}", block.line)));
                    break;
                }
            }
        } else {
            None
        };
        // Placeholders count the steps, also those that are left out.
        let comparable = printed.normalise(text.as_deref().unwrap_or_default());
        if text.is_some() {
            block.text = comparable;
        }
    }
    Ok(run)
}

fn shell(scenario: &Scenario) -> Result<Shell> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    for name in ["deploy", "examples"] {
        let there = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        let there = there.canonicalize().with_context(|| format!("there is no {name}"))?;
        std::os::unix::fs::symlink(there, folder.path().join(name))
            .with_context(|| format!("cannot link {name}"))?;
    }
    let fleetwright = binaries::fleetwright()?;
    let own = fleetwright.parent().context("fleetwright is in no folder")?.to_owned();
    let mut programs = vec![own, binaries::referees()?];
    for program in scenario.programs() {
        programs.push(match program {
            Program::ClusterAutoscaler => binaries::autoscaler()?,
        });
    }
    let environment = vec![
        ("KUBECONFIG".to_owned(), folder.path().join(KUBECONFIG)),
        ("XDG_DATA_HOME".to_owned(), folder.path().join(".local/share")),
        ("FLEETWRIGHT_LISTEN".to_owned(), "127.0.0.1:0".into()),
        ("COLUMNS".to_owned(), "100".into()),
    ];
    let programs: Vec<&Path> = programs.iter().map(PathBuf::as_path).collect();
    Ok(Shell::bare(folder, &programs, environment))
}

/// Runs one step. Nothing is returned for steps without golden output.
async fn run_step(
    block: &Block,
    shell: &Shell,
    background: &mut BTreeMap<String, Background>,
) -> Result<Option<String>> {
    Ok(match &block.step {
        Step::Nothing | Step::With(_) | Step::Needs(_) => None,
        Step::File(name) => {
            let path = shell.folder().join(name);
            fs::write(&path, &block.text).with_context(|| format!("cannot write {name}"))?;
            None
        }
        Step::Command(command) => Some(describe(&shell.output(command).await?)),
        Step::Until(command) => {
            let outcome = shell.until(command).await?;
            if !outcome.starts_with("(reached)") {
                bail!("{outcome}");
            }
            None
        }
        Step::Start { name, command } => {
            background.insert(name.clone(), Background::start(shell, name, command)?);
            None
        }
        Step::Wait { name, lines } => {
            named(background, name)?.wait(*lines).await?;
            None
        }
        Step::Show { name, lines } => Some(named(background, name)?.show(*lines).await?),
        Step::End { name, signal } => {
            let ending = background.remove(name).with_context(|| never_started(name))?;
            Some(ending.end(shell, *signal).await?)
        }
    })
}

fn named<'a>(
    background: &'a mut BTreeMap<String, Background>,
    name: &str,
) -> Result<&'a mut Background> {
    background.get_mut(name).with_context(|| never_started(name))
}

fn never_started(name: &str) -> String {
    format!("nothing named {name} was started")
}

/// Makes output comparable.
struct Output {
    text: Printed,
    home: String,
    port: Regex,
}

impl Output {
    fn new(shell: &Shell) -> Result<Self> {
        Ok(Self {
            text: Printed::default(),
            home: shell.folder().display().to_string(),
            port: Regex::new(r"\bport [1-9]\d{3,4}\b").context("a bad pattern")?,
        })
    }

    fn normalise(&mut self, printed: &str) -> String {
        let text = self.text.normalise(&printed.replace(&self.home, "~"));
        let text = self.port.replace_all(&text, "port <port>");
        // Empty lines at the end cannot be told from those that separate steps.
        let text = text.trim_end_matches('\n');
        if text.is_empty() { String::new() } else { format!("{text}\n") }
    }
}
