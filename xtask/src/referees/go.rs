//! The Go tool chain: found, checked, and called.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::Referee;

/// Where Go is looked for: the path, then the place its own installer uses.
const CANDIDATES: [&str; 2] = ["go", "/usr/local/go/bin/go"];

/// A Go tool chain that is new enough.
pub(super) struct Toolchain {
    program: OsString,
}

/// Finds a Go that can build the module, or says what is wrong.
pub(super) fn find(module: &Path, manifest: &str) -> Result<Toolchain> {
    let wanted = wanted_version(manifest)?;
    for candidate in CANDIDATES {
        // Asked inside the module, where Go may switch to a newer tool chain by itself.
        let Ok(output) =
            Command::new(candidate).args(["env", "GOVERSION"]).current_dir(module).output()
        else {
            continue;
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "`{candidate} env GOVERSION` failed; Go {wanted} or later is needed: {}",
            errors.trim()
        );
        let version = String::from_utf8_lossy(&output.stdout);
        let found = version.trim().trim_start_matches("go");
        if numbers(found) < numbers(wanted) {
            bail!(
                "Go {wanted} or later is needed to build the referees, but {candidate} is \
                 {found}; install it from https://go.dev/dl/ (Debian's is too old)"
            );
        }
        return Ok(Toolchain { program: candidate.into() });
    }
    bail!(
        "Go is not installed, and the referees are built with it; install Go {wanted} or later \
         from https://go.dev/dl/ (Debian's is too old), or set KUBEBUILDER_ASSETS to a folder \
         that holds the binaries"
    )
}

impl Toolchain {
    /// Builds one command into a file.
    pub(super) fn build(
        &self,
        module: &Path,
        referee: &Referee,
        flags: &str,
        output: &Path,
    ) -> Result<()> {
        let package = referee.package;
        let status = Command::new(&self.program)
            .args(["build", "-trimpath", "-buildvcs=false", "-tags", referee.tags])
            .args(["-ldflags", flags, "-o"])
            .arg(output)
            .arg(package)
            .env("CGO_ENABLED", "0")
            .current_dir(module)
            .status()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        ensure!(
            status.success(),
            "`go build {package}` failed ({status}); its own message is above. If a module could \
             not be downloaded, check the network and GOPROXY, then run `cargo xtask referees` \
             again: what is built already is kept"
        );
        Ok(())
    }

    /// Downloads a module that go.mod requires, checked against go.sum, and gives its folder.
    pub(super) fn download(&self, module: &Path, name: &str) -> Result<PathBuf> {
        let output = Command::new(&self.program)
            .args(["mod", "download", "-json", name])
            .current_dir(module)
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        match answer["Dir"].as_str() {
            Some(folder) if output.status.success() => Ok(PathBuf::from(folder)),
            _ => bail!(
                "`go mod download {name}` failed: {}{}; check the network and GOPROXY",
                answer["Error"].as_str().unwrap_or_default(),
                String::from_utf8_lossy(&output.stderr).trim()
            ),
        }
    }
}

/// The version on the `go` line of go.mod.
fn wanted_version(manifest: &str) -> Result<&str> {
    manifest
        .lines()
        .find_map(|line| line.strip_prefix("go "))
        .map(str::trim)
        .context("go.mod has no `go` line")
}

/// `1.26rc1` and `1.26.3 X:flags` compare by their leading numbers.
fn numbers(version: &str) -> Vec<u32> {
    let plain = version.split_whitespace().next().unwrap_or_default();
    let mut parts: Vec<u32> = plain
        .split('.')
        .map(|part| {
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse().unwrap_or(0)
        })
        .collect();
    parts.resize(3, 0);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(numbers("1.19.8") < numbers("1.26.0"));
        assert!(numbers("1.26") >= numbers("1.26.0"));
        assert!(numbers("1.100.1 X:boringcrypto") > numbers("1.26.0"));
        assert!(numbers("1.26rc1") >= numbers("1.26.0"));
        assert!(numbers("nonsense") < numbers("1.26.0"));
    }
}
