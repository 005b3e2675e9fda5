//! Referees that are Python programs: boto3 and moto, in an environment of their own.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash as _, Hasher as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use anyhow::{Context as _, bail};

/// What is installed, every version pinned.
const REQUIREMENTS: &str = include_str!("../python/requirements.txt");

/// Where the programs are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python")
}

/// The interpreter of the environment, which is made when it is missing. It lies in the cache,
/// under a name that changes with the requirements.
pub fn interpreter() -> anyhow::Result<PathBuf> {
    // Tests run side by side, and only one of them may install.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _one = INSTALLING.lock();
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    let mut hasher = DefaultHasher::new();
    REQUIREMENTS.hash(&mut hasher);
    let name = format!("python-{:016x}", hasher.finish());
    let folder = Path::new(&home).join(".cache/fleetwright").join(name);
    let (python, complete) = (folder.join("bin/python"), folder.join("complete"));
    if complete.exists() {
        return Ok(python);
    }
    fs::create_dir_all(&folder)?;
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))
        .context("python3 with its venv module is needed (Debian: python3-venv)")?;
    let requirements = self::folder().join("requirements.txt");
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    run(install.arg(requirements))?;
    fs::write(complete, REQUIREMENTS)?;
    Ok(python)
}

/// Checks requests against the public description of the services: `calls` is the audit log of
/// the simulated AWS as JSON.
pub fn check_requests(calls: &serde_json::Value) -> anyhow::Result<String> {
    let mut file = tempfile::NamedTempFile::new()?;
    serde_json::to_writer(&mut file, calls)?;
    let mut command = Command::new(interpreter()?);
    command.arg(folder().join("service_model.py")).arg(file.path());
    run(command.env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Runs a program, and fails with what it said.
pub fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().to_string_lossy()))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        bail!("{}{}", said(&output.stdout), said(&output.stderr));
    }
    Ok(said(&output.stdout) + &said(&output.stderr))
}
