//! Compares transcripts, minding the accepted differences.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use regex::Regex;
use serde_json::Value;
use similar::TextDiff;

use crate::cluster::Cluster;
use crate::json_path::JsonPath;
use crate::normalise::normalise;
use crate::script::transcript::{Body, Entry};
use crate::script::{self, Script};
use crate::session::{self, Session};

/// The list of accepted differences, beside the scripts.
pub const ACCEPTED_FILE: &str = "accepted-differences.txt";

/// How many differing interactions are shown in full.
const SHOWN: usize = 60;

/// Differences that somebody decided to live with, each with a reason.
#[derive(Debug, Default)]
pub struct Accepted {
    entries: Vec<AcceptedDifference>,
}

#[derive(Debug)]
struct AcceptedDifference {
    file: Regex,
    title: Regex,
    part: Part,
    text: String,
    used: AtomicBool,
}

#[derive(Debug)]
enum Part {
    Everything,
    Code,
    ContentType,
    Warnings,
    Path(JsonPath),
    Line(Regex),
}

impl Accepted {
    /// Reads `scripts/accepted-differences.txt`.
    pub fn load() -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(ACCEPTED_FILE);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text)
    }

    /// Reads lines of `file | interaction | part | reason`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut entries = Vec::new();
        for line in text.lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = line.split(" | ").map(str::trim).collect();
            let [file, title, part, reason] = fields[..] else {
                return None.with_context(|| format!("not `file | title | part | reason`: {line}"));
            };
            ensure!(reason.len() > 10, "an accepted difference needs a reason: {line}");
            entries.push(AcceptedDifference {
                file: wildcard(file)?,
                title: wildcard(title)?,
                part: part_of(part)?,
                text: line.to_owned(),
                used: AtomicBool::new(false),
            });
        }
        Ok(Self { entries })
    }

    /// The lines that excused nothing so far.
    pub fn unused(&self) -> Vec<&str> {
        self.entries
            .iter()
            .filter(|entry| !entry.used.load(Ordering::Relaxed))
            .map(|entry| entry.text.as_str())
            .collect()
    }

    fn applying<'a>(
        &'a self,
        file: &'a str,
        title: &'a str,
    ) -> impl Iterator<Item = &'a AcceptedDifference> {
        self.entries
            .iter()
            .filter(move |entry| entry.file.is_match(file) && entry.title.is_match(title))
    }
}

pub(crate) fn wildcard(text: &str) -> Result<Regex> {
    let pattern = regex::escape(text).replace(r"\*", ".*");
    Regex::new(&format!("^{pattern}$")).context("a bad pattern")
}

fn part_of(text: &str) -> Result<Part> {
    Ok(match text {
        "everything" => Part::Everything,
        "code" => Part::Code,
        "content-type" => Part::ContentType,
        "warnings" => Part::Warnings,
        path if path.starts_with(['.', '[']) => Part::Path(JsonPath::parse(path)?),
        other => {
            let pattern = other.strip_prefix("line ").with_context(|| {
                format!("a part is everything, code, content-type, warnings, a path, or `line REGEX`: {other}")
            })?;
            Part::Line(Regex::new(pattern)?)
        }
    })
}

/// Runs a script on both servers at once and compares. Nothing is returned when they agree.
pub async fn script(
    script: &Script,
    real: &dyn Cluster,
    embedded: &dyn Cluster,
    accepted: &Accepted,
) -> Result<Option<String>> {
    let (left, right) = tokio::join!(script::run(script, real), script::run(script, embedded));
    let mut left = left.context("on the real server")?;
    let mut right = right.context("on the embedded server")?;
    normalise(&mut left);
    normalise(&mut right);
    Ok(transcripts(&script.name, &left, &right, accepted))
}

/// Runs a session on both servers at once and compares. Nothing is returned when they agree.
pub async fn session(
    session: &Session,
    real: &dyn Cluster,
    embedded: &dyn Cluster,
    binaries: &Path,
    accepted: &Accepted,
) -> Result<Option<String>> {
    let (left, right) = tokio::join!(
        session::run(session, real, binaries),
        session::run(session, embedded, binaries)
    );
    let left = left.context("on the real server")?;
    let right = right.context("on the embedded server")?;
    let steps: Vec<(String, String, String)> = left
        .into_iter()
        .zip(right)
        .map(|(left, right)| (left.command, left.text, right.text))
        .collect();
    Ok(texts(&session.name, &steps, accepted))
}

/// Compares what two servers answered to one script. Nothing is returned when they agree.
pub fn transcripts(
    file: &str,
    real: &[Entry],
    embedded: &[Entry],
    accepted: &Accepted,
) -> Option<String> {
    let mut report = Report::new(file);
    for (real, embedded) in real.iter().zip(embedded) {
        if real == embedded {
            continue;
        }
        let (mut left, mut right) = (real.clone(), embedded.clone());
        for difference in accepted.applying(file, &real.title) {
            if excuse(&mut left, &mut right, &difference.part) {
                difference.used.store(true, Ordering::Relaxed);
            }
        }
        report.add(&real.title, &left.render(), &right.render());
    }
    if real.len() != embedded.len() {
        let lengths = (real.len(), embedded.len());
        report.add("number of answers", &lengths.0.to_string(), &lengths.1.to_string());
    }
    report.finish()
}

/// Compares two texts of a session step in the same way.
pub fn texts(
    file: &str,
    steps: &[(String, String, String)],
    accepted: &Accepted,
) -> Option<String> {
    let mut report = Report::new(file);
    for (title, real, embedded) in steps {
        if real == embedded {
            continue;
        }
        let (mut left, mut right) = (real.clone(), embedded.clone());
        for difference in accepted.applying(file, title) {
            let excused = match &difference.part {
                Part::Everything => {
                    left.clear();
                    right.clear();
                    true
                }
                Part::Line(pattern) => {
                    drop_lines(&mut left, pattern) | drop_lines(&mut right, pattern)
                }
                Part::Code | Part::ContentType | Part::Warnings | Part::Path(_) => false,
            };
            if excused {
                difference.used.store(true, Ordering::Relaxed);
            }
        }
        report.add(title, &left, &right);
    }
    report.finish()
}

fn drop_lines(text: &mut String, pattern: &Regex) -> bool {
    let kept: Vec<&str> = text.lines().filter(|line| !pattern.is_match(line)).collect();
    let kept = kept.join("\n");
    let dropped = kept.len() + 1 < text.len();
    *text = kept;
    dropped
}

/// Takes an accepted difference out of both answers; whether there was one.
fn excuse(left: &mut Entry, right: &mut Entry, part: &Part) -> bool {
    match part {
        Part::Everything => {
            *right = left.clone();
            true
        }
        Part::Code => {
            let differs = left.code != right.code;
            right.code = left.code;
            differs
        }
        Part::ContentType => {
            let differs = left.content_type != right.content_type;
            right.content_type.clone_from(&left.content_type);
            differs
        }
        Part::Warnings => {
            let differs = left.warnings != right.warnings;
            right.warnings.clone_from(&left.warnings);
            differs
        }
        Part::Path(path) => {
            remove_from_body(&mut left.body, path) | remove_from_body(&mut right.body, path)
        }
        Part::Line(_) => false,
    }
}

fn remove_from_body(body: &mut Body, path: &JsonPath) -> bool {
    match body {
        Body::Json(value) => path.remove(value),
        Body::Events { events, .. } => {
            events.iter_mut().fold(false, |removed, event: &mut Value| path.remove(event) | removed)
        }
        Body::Text(_) | Body::Nothing => false,
    }
}

struct Report {
    file: String,
    differing: usize,
    text: String,
}

impl Report {
    fn new(file: &str) -> Self {
        Self { file: file.to_owned(), differing: 0, text: String::new() }
    }

    fn add(&mut self, title: &str, real: &str, embedded: &str) {
        if real == embedded {
            return;
        }
        self.differing += 1;
        if self.differing > SHOWN {
            return;
        }
        let diff = TextDiff::from_lines(real, embedded);
        let _ = writeln!(self.text, "\n{}: {title}", self.file);
        let _ = writeln!(
            self.text,
            "{}",
            diff.unified_diff().context_radius(4).header("real", "embedded")
        );
    }

    fn finish(mut self) -> Option<String> {
        if self.differing == 0 {
            return None;
        }
        if self.differing > SHOWN {
            let _ = writeln!(self.text, "... and {} more", self.differing - SHOWN);
        }
        Some(self.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::script::transcript::Selection;

    fn entry(code: u16, body: Value) -> Entry {
        Entry {
            title: "one thing".into(),
            request: "GET /x".into(),
            code: Some(code),
            content_type: None,
            warnings: Vec::new(),
            body: Body::Json(body),
            selection: Selection::default(),
        }
    }

    #[test]
    fn equal_answers_are_not_reported() {
        let answers = [entry(200, json!({"a": 1}))];
        assert_eq!(transcripts("x", &answers, &answers, &Accepted::default()), None);
    }

    #[test]
    fn a_difference_names_script_and_interaction() {
        let report = transcripts(
            "x",
            &[entry(200, json!({"a": 1}))],
            &[entry(200, json!({"a": 2}))],
            &Accepted::default(),
        )
        .unwrap();
        assert!(report.contains("x: one thing"), "{report}");
        assert!(report.contains("-  \"a\": 1") && report.contains("+  \"a\": 2"), "{report}");
    }

    #[test]
    fn only_what_is_listed_is_accepted() {
        let accepted = Accepted::parse(
            "# comment\nx | one * | .a | nobody reads this field\ny | * | code | a reason too\n",
        )
        .unwrap();
        let real = [entry(200, json!({"a": 1, "b": 1}))];
        let embedded = [entry(200, json!({"a": 2, "b": 1}))];
        assert_eq!(transcripts("x", &real, &embedded, &accepted), None);
        assert_eq!(accepted.unused().len(), 1);
        let worse = [entry(200, json!({"a": 2, "b": 2}))];
        assert!(transcripts("x", &real, &worse, &accepted).is_some());
        assert!(transcripts("z", &real, &embedded, &accepted).is_some());
    }

    #[test]
    fn a_reason_is_required() {
        assert!(Accepted::parse("x | y | code | ").is_err());
        assert!(Accepted::parse("x | y | nonsense | a good reason").is_err());
    }
}
