//! `cargo xtask generate`: writes the committed descriptions of the built-in kinds.
//!
//! Two things describe a built-in kind, and neither is written by hand:
//!
//! - its OpenAPI v3 document, taken from a running referee. The copies inside the Kubernetes
//!   module lack the enumerations that `kubectl explain` prints, so only a server will do;
//! - its Go types, read from the sources: JSON names, what is left out when empty, protobuf
//!   numbers, patch strategies. The OpenAPI documents hold none of the first three.
//!
//! What describes our own kinds, and the roles of our controllers, is printed by the built binary.
//!
//! Both descriptions come from the versions that `tools/referees/go.mod` pins, and the output is the same
//! bytes for the same versions. `--check` writes nothing and fails when a file would change.

mod components;
mod gosource;
mod modules;
mod server;
mod table;

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

/// Group versions whose kinds are described, in the order of their documents.
const GROUP_VERSIONS: &[&str] = &[
    "v1",
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "networking.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "resource.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
];

const OPENAPI_FOLDER: &str = "crates/kschema/src/builtin/openapi";
/// What the built binary prints, and by which name: the reference of our own kinds, and what is
/// applied to a cluster.
const PRINTED: &[(&str, &str)] = &[
    ("docs/crds.md", "crd-reference"),
    ("deploy/crds.yaml", "crds"),
    ("deploy/rbac.yaml", "rbac"),
];
const TYPES_FILE: &str = "crates/kproto/src/generated/types.txt";

/// Runs the chore with the arguments after `generate`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let mut check = false;
    let mut docs_only = false;
    let mut aws_only = false;
    let mut binaries = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--check" => check = true,
            "--docs" => docs_only = true,
            "--referees" => {
                let folder = rest.next().context("--referees needs a folder")?;
                binaries = Some(PathBuf::from(folder));
            }
            "--aws" => aws_only = true,
            other => {
                bail!("unknown argument {other}; known: --check, --aws, --docs, --referees DIR")
            }
        }
    }
    let root = workspace_root()?;
    if aws_only {
        return finish(&root, &crate::aws_model::files(&root)?, Vec::new(), check);
    }
    let mut files = BTreeMap::new();
    for (path, name) in PRINTED {
        files.insert(PathBuf::from(path), printed(name)?);
    }
    if docs_only {
        return finish(&root, &files, Vec::new(), check);
    }
    files.append(&mut crate::aws_model::files(&root)?);
    let modules = modules::locate(&root)?;
    let documents = server::openapi_documents(&server::binaries(binaries)?)?;

    let folder = Path::new(OPENAPI_FOLDER);
    for (path, document) in &documents {
        files.insert(folder.join(components::file_name(path)), gzip(document)?);
    }
    files.insert(folder.join("files.rs"), components::file_list(&documents).into_bytes());
    let merged = serde_json::to_vec(&components::merged(&documents)?)?;
    files.insert(folder.join("components.json.gz"), gzip(&merged)?);
    let kinds = components::kinds(&documents)?;
    let packages = gosource::Packages::new(modules);
    files.insert(PathBuf::from(TYPES_FILE), table::write(&kinds, &packages)?.into_bytes());

    let stale = stale_documents(&root, &files)?;
    finish(&root, &files, stale, check)
}

/// What the binary prints, built first if need be.
fn printed(file: &str) -> anyhow::Result<Vec<u8>> {
    let binary = env::var_os("FLEETWRIGHT_BIN").filter(|path| !path.is_empty());
    let mut command = Command::new(
        binary.as_ref().or(env::var_os("CARGO").as_ref()).unwrap_or(&OsString::from("cargo")),
    );
    if binary.is_none() {
        command.args(["run", "--quiet", "--package", "fleetwright", "--"]);
    }
    let output = command
        .args(["generate", file])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run fleetwright")?;
    ensure!(output.status.success(), "`fleetwright generate {file}` failed");
    Ok(output.stdout)
}

/// Writes the files, or with `check` says which of them are out of date.
fn finish(
    root: &Path,
    files: &BTreeMap<PathBuf, Vec<u8>>,
    stale: Vec<PathBuf>,
    check: bool,
) -> anyhow::Result<()> {
    if check {
        let mut changed = stale;
        for (path, bytes) in files {
            if fs::read(root.join(path)).ok().as_ref() != Some(bytes) {
                changed.push(path.clone());
            }
        }
        if !changed.is_empty() {
            bail!("out of date, run `cargo xtask generate`: {changed:?}");
        }
        return Ok(());
    }
    for path in stale {
        fs::remove_file(root.join(&path))
            .with_context(|| format!("removing {}", path.display()))?;
    }
    for (path, bytes) in files {
        let path = root.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Documents of an earlier version that no longer exist.
fn stale_documents(
    root: &Path,
    files: &BTreeMap<PathBuf, Vec<u8>>,
) -> anyhow::Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(root.join(OPENAPI_FOLDER)) else {
        return Ok(Vec::new());
    };
    let mut stale = Vec::new();
    for entry in entries {
        let path = Path::new(OPENAPI_FOLDER).join(entry?.file_name());
        if path.extension().is_some_and(|e| e == "gz") && !files.contains_key(&path) {
            stale.push(path);
        }
    }
    Ok(stale)
}

fn workspace_root() -> anyhow::Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .context("xtask has no parent folder")
}

/// Compresses without a time stamp or a file name, so that the bytes are reproducible.
fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    use std::io::Write as _;
    let mut encoder =
        flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
