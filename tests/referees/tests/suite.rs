//! Every script and every session, on one real and one embedded server; every kind beside its
//! upstream definition.
//!
//! `cargo test -p fleetwright-referees -- crud` runs what has `crud` in its name.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use fleetwright_referees::compare::{self, Accepted};
use fleetwright_referees::crds;
use fleetwright_referees::script::{self, Script};
use fleetwright_referees::session::Session;
use fleetwright_referees::{EmbeddedCluster, RealCluster};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

/// The servers start with the first test that needs them and are shared by all.
struct Suite {
    runtime: Runtime,
    servers: OnceLock<Result<(RealCluster, EmbeddedCluster), String>>,
    accepted: Accepted,
}

impl Suite {
    fn servers(&self) -> Result<&(RealCluster, EmbeddedCluster), Failed> {
        let start =
            async { anyhow::Ok((RealCluster::start().await?, EmbeddedCluster::start().await?)) };
        self.servers
            .get_or_init(|| self.runtime.block_on(start).map_err(|error| format!("{error:#}")))
            .as_ref()
            .map_err(|error| Failed::from(error.clone()))
    }

    fn script(&self, script: &Script) -> Result<(), Failed> {
        let (real, embedded) = self.servers()?;
        report(self.runtime.block_on(compare::script(script, real, embedded, &self.accepted)))
    }

    fn session(&self, session: &Session) -> Result<(), Failed> {
        let (real, embedded) = self.servers()?;
        let binaries = real.binaries();
        let compared = compare::session(session, real, embedded, binaries, &self.accepted);
        report(self.runtime.block_on(compared))
    }
}

fn report(result: anyhow::Result<Option<String>>) -> Result<(), Failed> {
    match result {
        Ok(None) => Ok(()),
        Ok(Some(difference)) => Err(difference.into()),
        Err(error) => Err(format!("{error:#}").into()),
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // Scripts share the servers, and two cores are all there is.
    arguments.test_threads = Some(1);
    let suite = Arc::new(Suite {
        runtime: tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .worker_threads(2)
            .build()?,
        servers: OnceLock::new(),
        accepted: Accepted::load()?,
    });

    let mut trials = Vec::new();
    for file in script::files("scripts")? {
        let script = Script::load(&file)?;
        let suite = Arc::clone(&suite);
        trials.push(Trial::test(format!("script {}", script.name), move || suite.script(&script)));
    }
    for file in script::files("sessions")? {
        let session = Session::load(&file)?;
        let suite = Arc::clone(&suite);
        let name = format!("session {}", session.name);
        trials.push(Trial::test(name, move || suite.session(&session)));
    }
    for kind in crds::KINDS {
        trials.push(
            Trial::test(format!("crd {}", kind.name), || report(kind.compare()))
                // Whoever brings the programs has no need of Go, by which this referee comes.
                .with_ignored_flag(std::env::var_os("KUBEBUILDER_ASSETS").is_some()),
        );
    }
    let everything = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);

    let unused = suite.accepted.unused();
    if everything && !conclusion.has_failed() && !unused.is_empty() {
        eprintln!("accepted differences that excuse nothing; remove them:\n{}", unused.join("\n"));
        return Ok(ExitCode::FAILURE);
    }
    // The suite, and with it the servers, ends here and not at the exit of the process.
    drop(suite);
    Ok(conclusion.exit_code())
}
