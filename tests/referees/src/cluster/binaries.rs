//! Where the programs are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The folder that holds kube-apiserver and the others, built first if need be.
///
/// `cargo xtask referees` alone knows where that is, so it is asked. When nothing is left to
/// build it answers in a fraction of a second.
pub fn referees() -> Result<PathBuf> {
    ask(&[])
}

/// AWS's mock of the instance metadata service, built first if need be.
pub fn metadata_mock() -> Result<PathBuf> {
    Ok(ask(&["--metadata"])?.join("ec2-metadata-mock"))
}

/// The folder that holds the cluster-autoscaler, built first if need be.
pub fn autoscaler() -> Result<PathBuf> {
    ask(&["--autoscaler"])
}

/// The folder of the Go module whose CustomResourceDefinitions ours must match.
pub fn crd_module() -> Result<PathBuf> {
    ask(&["--crds"])
}

fn ask(arguments: &[&str]) -> Result<PathBuf> {
    let output = cargo()
        .args(["xtask", "referees"])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run `cargo xtask referees`")?;
    ensure!(output.status.success(), "`cargo xtask referees` failed; its message is above");
    let text = String::from_utf8(output.stdout).context("the folder's name is not text")?;
    let folder = text.lines().last().context("`cargo xtask referees` printed no folder")?;
    Ok(PathBuf::from(folder))
}

/// The `fleetwright` binary: `FLEETWRIGHT_BIN`, or else built from this workspace.
pub fn fleetwright() -> Result<PathBuf> {
    if let Some(path) = env::var_os("FLEETWRIGHT_BIN").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "FLEETWRIGHT_BIN is {}, which is no file", path.display());
        return Ok(path);
    }
    let status = cargo()
        .args(["build", "--quiet", "--package", "fleetwright", "--bin", "fleetwright"])
        .status()
        .context("cannot run `cargo build`")?;
    ensure!(status.success(), "fleetwright does not build; the compiler's message is above");
    // Both this program and fleetwright are in the folder of the profile; test binaries are in
    // its `deps`.
    let own = env::current_exe().context("cannot find this program's own path")?;
    let path = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("fleetwright"))
        .find(|path| path.is_file())
        .context("fleetwright was built, but is not beside this program; set FLEETWRIGHT_BIN")?;
    Ok(path)
}

fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
    // What cargo tells a test about its package would make an inner cargo build dependencies
    // again whose build scripts look at it, and the outer one build them back.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}
