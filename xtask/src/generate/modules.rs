//! Where the Go sources of the pinned versions are.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Source folders of the modules that define the API types.
pub(super) struct Modules {
    /// `k8s.io/api`.
    pub(super) api: PathBuf,
    /// `k8s.io/apimachinery`.
    pub(super) apimachinery: PathBuf,
    /// `k8s.io/apiextensions-apiserver`.
    pub(super) apiextensions: PathBuf,
}

/// Asks Go, which knows the replacements in `tools/referees/go.mod`.
pub(super) fn locate(root: &Path) -> anyhow::Result<Modules> {
    let folder = root.join("tools/referees");
    let module = |name: &str| -> anyhow::Result<PathBuf> {
        let output = Command::new("go")
            .args(["list", "-m", "-f", "{{.Dir}}", name])
            .current_dir(&folder)
            .output()
            .context("running go list")?;
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() || path.is_empty() {
            bail!("module {name} is not downloaded: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(path.into())
    };
    Ok(Modules {
        api: module("k8s.io/api")?,
        apimachinery: module("k8s.io/apimachinery")?,
        apiextensions: module("k8s.io/apiextensions-apiserver")?,
    })
}
