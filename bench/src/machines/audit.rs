//! The requests of one user, as kube-apiserver writes them down.

use std::{
    fs,
    io::{Read, Seek, SeekFrom},
    path::PathBuf,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::traffic::Counts;

/// An audit log that is read as it grows.
pub(crate) struct Audit {
    folder: TempDir,
    read: u64,
}

impl Audit {
    /// A log of what one user asks for.
    pub(crate) fn of(user: &str) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "users": [user]}],
        });
        fs::write(folder.path().join("policy.json"), policy.to_string())
            .context("cannot write the audit policy")?;
        Ok(Self { folder, read: 0 })
    }

    /// What kube-apiserver must be told.
    pub(crate) fn flags(&self) -> Vec<String> {
        vec![
            format!("--audit-policy-file={}", self.folder.path().join("policy.json").display()),
            format!("--audit-log-path={}", self.log().display()),
        ]
    }

    /// What was asked for since the last time.
    pub(crate) fn news(&mut self) -> Result<Counts> {
        let mut text = String::new();
        // There is no file before the first request.
        if let Ok(mut file) = fs::File::open(self.log()) {
            file.seek(SeekFrom::Start(self.read)).context("cannot read the audit log")?;
            file.read_to_string(&mut text).context("cannot read the audit log")?;
        }
        // The last line may be half written.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        let mut counts = Counts::new();
        for line in text[..whole].lines() {
            let entry: Value = serde_json::from_str(line).context("the audit log is not JSON")?;
            if let Some(what) = name_of(&entry) {
                *counts.entry(what).or_default() += 1;
            }
        }
        Ok(counts)
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }
}

/// What an entry says was asked for. Watches are written down twice: when they begin, and when
/// they end.
fn name_of(entry: &Value) -> Option<String> {
    let verb = entry["verb"].as_str()?;
    let counted = if verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
    if entry["stage"] != counted {
        return None;
    }
    let object = &entry["objectRef"];
    let resource = object["resource"].as_str().or_else(|| entry["requestURI"].as_str())?;
    Some(match object["subresource"].as_str() {
        Some(sub) => format!("{verb} {resource}/{sub}"),
        None => format!("{verb} {resource}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_counts_when_it_begins_and_others_when_they_end() {
        let entry = |verb: &str, stage: &str, sub: Value| {
            json!({"verb": verb, "stage": stage,
                "objectRef": {"resource": "machines", "subresource": sub}})
        };
        let named = |verb, stage| name_of(&entry(verb, stage, Value::Null));
        assert_eq!(named("watch", "ResponseStarted").unwrap(), "watch machines");
        assert_eq!(named("watch", "ResponseComplete"), None);
        assert_eq!(named("list", "ResponseComplete").unwrap(), "list machines");
        let patch = entry("patch", "ResponseComplete", json!("status"));
        assert_eq!(name_of(&patch).unwrap(), "patch machines/status");
    }
}
