//! Files that have no runner, each for a reason: `pending.txt`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

/// The committed list.
pub const LIST: &str = include_str!("../pending.txt");

/// Why a file has no runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Excuse {
    /// It waits for the work of an issue.
    Pending {
        /// The issue, or `later`.
        issue: String,
        /// What is missing.
        reason: String,
    },
    /// It will never have one.
    NotApplicable {
        /// Why not.
        reason: String,
    },
}

/// Reads lines of `file  issue  reason`; `-` for the issue means never.
pub fn parse(text: &str) -> Result<BTreeMap<String, Excuse>> {
    let mut excuses = BTreeMap::new();
    for line in text.lines() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (file, rest) = line
            .split_once(char::is_whitespace)
            .with_context(|| format!("not `file  issue  reason`: {line}"))?;
        let (issue, reason) = rest
            .trim_start()
            .split_once(char::is_whitespace)
            .with_context(|| format!("this entry has no reason: {line}"))?;
        let reason = reason.trim().to_owned();
        let excuse = match issue {
            "-" => Excuse::NotApplicable { reason },
            "later" => Excuse::Pending { issue: issue.to_owned(), reason },
            number if number.parse::<u32>().is_ok() => {
                Excuse::Pending { issue: format!("issue {number}"), reason }
            }
            other => bail!("an issue is a number, `later` or `-`, not {other:?}: {line}"),
        };
        if excuses.insert(file.to_owned(), excuse).is_some() {
            bail!("listed twice: {file}");
        }
    }
    Ok(excuses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_list_is_well_formed() {
        assert!(!parse(LIST).unwrap().is_empty());
    }

    #[test]
    fn entries_and_their_faults() {
        let excuses = parse("# comment\n\na.json  3  not built\nb.json - history\n").unwrap();
        let pending = Excuse::Pending { issue: "issue 3".into(), reason: "not built".into() };
        assert_eq!(excuses["a.json"], pending);
        assert_eq!(excuses["b.json"], Excuse::NotApplicable { reason: "history".into() });
        for bad in ["a.json", "a.json 3", "a.json soon because", "a.json 3 x\na.json 3 y"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
