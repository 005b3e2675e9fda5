//! Child processes that never outlive us.
//!
//! Dropping a [`Supervised`] process kills it, a panic included. When we are killed outright
//! nothing is dropped, so each process has a watchdog: a shell that reads from a pipe only we
//! hold. The pipe closes with us, and the watchdog kills the process by its identifier. (A
//! parent-death signal would follow the thread that started the process, and test threads end
//! early.)

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// How much of a log is quoted when a process fails.
const QUOTED_LINES: usize = 15;

/// A running program, its log, and its watchdog.
#[derive(Debug)]
pub struct Supervised {
    name: String,
    child: Child,
    watchdog: Child,
    log: PathBuf,
    /// Whoever uses the process was told that it ended.
    end_is_known: bool,
}

impl Supervised {
    /// Starts a program whose output goes to `<folder>/<name>.log`.
    pub fn start<A: AsRef<OsStr>>(
        name: &str,
        program: &Path,
        arguments: &[A],
        folder: &Path,
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        Self::spawn(name, &mut command, folder)
    }

    /// Starts a command whose output goes to `<folder>/<name>.log`.
    pub fn spawn(name: &str, command: &mut Command, folder: &Path) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let output =
            File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let errors = output.try_clone().context("cannot share the log file")?;
        let mut child = command
            .stdout(output)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let watchdog = Command::new("sh")
            .args(["-c", "cat >/dev/null; kill -9 \"$0\" 2>/dev/null"])
            .arg(child.id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match watchdog {
            Ok(watchdog) => {
                Ok(Self { name: name.to_owned(), child, watchdog, log, end_is_known: false })
            }
            Err(error) => {
                stop(&mut child);
                Err(error).context("cannot start the watchdog shell")
            }
        }
    }

    /// The process identifier.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file that holds what the program printed.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How the process ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait().context("cannot ask after a child process")?;
        self.end_is_known |= status.is_some();
        Ok(status)
    }

    /// Fails when the process has ended, quoting the end of its log.
    pub fn check(&mut self) -> Result<()> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => bail!("{} ended early ({status}):\n{}", self.name, self.log_tail()),
        }
    }

    /// The last lines that the program printed.
    pub fn log_tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n")
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // A server that crashed must not be mistaken for one that merely answered wrongly.
        if !self.end_is_known
            && let Err(error) = self.check()
        {
            eprintln!("{error:#}");
        }
        // The watchdog first: afterwards the identifier may belong to somebody else.
        stop(&mut self.watchdog);
        stop(&mut self.child);
    }
}

fn stop(child: &mut Child) {
    // Both fail only when the process is gone already, which is what we want.
    drop(child.kill());
    drop(child.wait());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_alive(id: u32) -> bool {
        Path::new(&format!("/proc/{id}/stat")).exists()
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut process =
            Supervised::start("sleeper", Path::new("sleep"), &["60"], folder.path()).unwrap();
        process.check().unwrap();
        let id = process.id();
        assert!(is_alive(id));
        drop(process);
        assert!(!is_alive(id));
    }

    #[test]
    fn an_early_end_is_told_with_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Supervised::start(
            "failing",
            Path::new("sh"),
            &["-c", "echo no such luck; exit 3"],
            folder.path(),
        )
        .unwrap();
        process.child.wait().unwrap();
        let error = process.check().unwrap_err().to_string();
        assert!(error.contains("failing ended early") && error.contains("no such luck"), "{error}");
    }
}
