//! kubectl sessions: shell-like files whose commands run against a server.
//!
//! ~~~text
//! # a comment
//! file config.yaml
//! ```
//! apiVersion: v1
//! ...
//! ```
//! $ kubectl apply -f config.yaml
//! until $ kubectl get widget a        # again and again until it succeeds; output is ignored
//! follow w $ kubectl get cm -w        # runs in the background
//! seen w 1 line                       # waits until it has printed so much
//! stop w after 2 lines                # what it printed by then
//! ~~~
//!
//! The real kubectl runs with a kubeconfig whose namespace is the session's own, `$NS`. `$ALICE`,
//! `$BOB`, ... are kubeconfigs of other people. Standard output, errors and exit codes count.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::script::read;

mod normalise;
mod run;

pub use normalise::Printed;
pub use run::{Shell, describe, run};

/// A parsed session.
#[derive(Debug, Clone)]
pub struct Session {
    /// The file's name without its ending; also the name of the namespace.
    pub name: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    File { name: String, text: String },
    Command(String),
    Until(String),
    Follow { name: String, command: String },
    Seen { name: String, lines: usize },
    Stop { name: String, lines: usize },
}

/// What one command printed, normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The command as the session has it.
    pub command: String,
    /// Standard output, errors and exit code.
    pub text: String,
}

impl Session {
    /// Reads a session file.
    pub fn load(path: &Path) -> Result<Self> {
        let (name, text) = read(path)?;
        Self::parse(&name, &text)
    }

    /// Reads a session.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let mut steps = Vec::new();
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let place = || format!("session {name}, line {}", index + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(file) = line.strip_prefix("file ") {
                let fence = lines.next().map(|(_, line)| line);
                if fence != Some("```") {
                    bail!("{}: a fence must follow the file's name", place());
                }
                let mut text = String::new();
                loop {
                    let (_, line) =
                        lines.next().with_context(|| format!("{}: it never ends", place()))?;
                    if line == "```" {
                        break;
                    }
                    text.push_str(line);
                    text.push('\n');
                }
                steps.push(Step::File { name: file.to_owned(), text });
                continue;
            }
            steps.push(step(line).with_context(|| format!("{}: not understood: {line}", place()))?);
        }
        Ok(Self { name: name.to_owned(), steps })
    }
}

fn step(line: &str) -> Option<Step> {
    if let Some(command) = line.strip_prefix("$ ") {
        return Some(Step::Command(command.to_owned()));
    }
    if let Some(command) = line.strip_prefix("until $ ") {
        return Some(Step::Until(command.to_owned()));
    }
    if let Some(rest) = line.strip_prefix("follow ") {
        let (name, command) = rest.split_once(" $ ")?;
        return Some(Step::Follow { name: name.to_owned(), command: command.to_owned() });
    }
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["seen", name, lines, "lines" | "line"] => {
            Some(Step::Seen { name: name.to_owned(), lines: lines.parse().ok()? })
        }
        ["stop", name, "after", lines, "lines" | "line"] => {
            Some(Step::Stop { name: name.to_owned(), lines: lines.parse().ok()? })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_with_everything() {
        let text = "# comment\nfile a.yaml\n```\na: 1\n```\n$ kubectl get cm\n\
            until $ kubectl get x\nfollow w $ kubectl get cm -w\nstop w after 2 lines\n";
        let session = Session::parse("x", text).unwrap();
        assert_eq!(session.steps.len(), 5);
        assert_eq!(session.steps[0], Step::File { name: "a.yaml".into(), text: "a: 1\n".into() });
        assert_eq!(session.steps[4], Step::Stop { name: "w".into(), lines: 2 });
        assert!(Session::parse("x", "kubectl get cm").is_err());
        assert!(Session::parse("x", "file a\n```\n").is_err());
    }
}
