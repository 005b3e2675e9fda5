//! Reads and writes scenario files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// What marks the text below a step.
const INDENT: &str = "    ";

/// A scenario file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// The file's name without its ending.
    pub name: String,
    /// The file, step by step.
    pub blocks: Vec<Block>,
}

/// A line, and the indented text below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The line as it stands in the file.
    pub line: String,
    /// What it means.
    pub step: Step,
    /// The text below, without its indentation: golden output, or the contents of a file.
    pub text: String,
    /// Who takes part.
    pub part: Part,
    /// Empty lines after it.
    gap: usize,
}

/// Which servers take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The embedded one alone.
    Embedded,
    /// The real one alone.
    Real,
    /// Both, and they must print the same.
    Both,
}

/// What a line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A comment, an empty line or a heading.
    Nothing,
    /// A program that commands call besides `fleetwright` and `kubectl`.
    With(Program),
    /// A file to write.
    File(String),
    /// A command without whose success the scenario is left out.
    Needs(String),
    /// A command to run.
    Command(String),
    /// A command to repeat until it succeeds.
    Until(String),
    /// A command to run in the background.
    Start {
        /// What the scenario calls it.
        name: String,
        /// The command line.
        command: String,
    },
    /// Wait until it has printed so many lines.
    Wait {
        /// The name given at the start.
        name: String,
        /// Since its start.
        lines: usize,
    },
    /// The same, and show what is new.
    Show {
        /// The name given at the start.
        name: String,
        /// Since its start.
        lines: usize,
    },
    /// End it.
    End {
        /// The name given at the start.
        name: String,
        /// As `kill` knows it; nothing to wait until it ends by itself.
        signal: Option<&'static str>,
    },
}

/// What takes time to build, so that only scenarios have it that ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `cluster-autoscaler`.
    ClusterAutoscaler,
}

/// All scenario files, sorted.
pub fn files() -> Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files = Vec::new();
    for entry in
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry.context("cannot read a folder")?.path();
        if path.extension().is_some_and(|ending| ending == "txt") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

impl Scenario {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&name, &text)
    }

    /// Reads a text.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut part = Part::Embedded;
        for (index, line) in text.lines().enumerate() {
            let place = || format!("scenario {name}, line {}", index + 1);
            if line.is_empty() {
                if let Some(block) = blocks.last_mut() {
                    block.gap += 1;
                }
                continue;
            }
            if let Some(below) = line.strip_prefix(INDENT) {
                let block = blocks
                    .last_mut()
                    .filter(|block| block.step.has_text())
                    .with_context(|| format!("{}: this text belongs to no step", place()))?;
                // Empty lines between indented ones are part of the text.
                let gap = "\n".repeat(std::mem::take(&mut block.gap));
                block.text.push_str(&gap);
                block.text.push_str(below);
                block.text.push('\n');
                continue;
            }
            match line {
                "== both" => part = Part::Both,
                "== embedded" => part = Part::Embedded,
                "== real" => part = Part::Real,
                _ => {}
            }
            let step =
                step(line).with_context(|| format!("{}: not understood: {line}", place()))?;
            let line = line.to_owned();
            blocks.push(Block { line, step, text: String::new(), part, gap: 0 });
        }
        if blocks.is_empty() {
            bail!("scenario {name} is empty");
        }
        Ok(Self { name: name.to_owned(), blocks })
    }

    /// Writes it as a file.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            text.push_str(&block.line);
            text.push('\n');
            for line in block.text.lines() {
                if !line.is_empty() {
                    text.push_str(INDENT);
                    text.push_str(line);
                }
                text.push('\n');
            }
            text.push_str(&"\n".repeat(block.gap));
        }
        text
    }

    /// The programs that its commands call besides the usual ones.
    pub fn programs(&self) -> impl Iterator<Item = Program> {
        self.blocks.iter().filter_map(|block| match block.step {
            Step::With(program) => Some(program),
            _ => None,
        })
    }

    /// Whether this machine has what the scenario needs.
    pub fn is_possible(&self) -> bool {
        let succeeds = |command: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]).stdout(Stdio::null()).stderr(Stdio::null());
            shell.status().is_ok_and(|status| status.success())
        };
        self.blocks.iter().all(|block| match &block.step {
            Step::Needs(command) => succeeds(command),
            _ => true,
        })
    }

    /// Whether any of it concerns the real server.
    pub fn has_real(&self) -> bool {
        let concerned = |block: &Block| block.part != Part::Embedded && block.step != Step::Nothing;
        self.blocks.iter().any(concerned)
    }
}

impl Step {
    /// Whether indented text may follow.
    fn has_text(&self) -> bool {
        match self {
            Self::File(_) | Self::Command(_) | Self::Show { .. } | Self::End { .. } => true,
            Self::Nothing
            | Self::With(_)
            | Self::Needs(_)
            | Self::Until(_)
            | Self::Start { .. }
            | Self::Wait { .. } => false,
        }
    }
}

fn step(line: &str) -> Option<Step> {
    if line.starts_with("# ") || line == "#" {
        return Some(Step::Nothing);
    }
    if let Some(command) = line.strip_prefix("$ ") {
        return Some(Step::Command(command.to_owned()));
    }
    if let Some(command) = line.strip_prefix("needs $ ") {
        return Some(Step::Needs(command.to_owned()));
    }
    if let Some(command) = line.strip_prefix("until $ ") {
        return Some(Step::Until(command.to_owned()));
    }
    if let Some(rest) = line.strip_prefix("start ") {
        let (name, command) = rest.split_once(" $ ")?;
        return Some(Step::Start { name: name.to_owned(), command: command.to_owned() });
    }
    let words: Vec<&str> = line.split(' ').collect();
    Some(match words[..] {
        ["==", "both" | "embedded" | "real"] => Step::Nothing,
        ["with", "cluster-autoscaler"] => Step::With(Program::ClusterAutoscaler),
        ["file", name] => Step::File(name.to_owned()),
        ["wait", name, lines, "lines" | "line"] => {
            Step::Wait { name: name.to_owned(), lines: lines.parse().ok()? }
        }
        ["show", name, lines, "lines" | "line"] => {
            Step::Show { name: name.to_owned(), lines: lines.parse().ok()? }
        }
        ["interrupt", name] => Step::End { name: name.to_owned(), signal: Some("INT") },
        ["kill", name] => Step::End { name: name.to_owned(), signal: Some("KILL") },
        ["finish", name] => Step::End { name: name.to_owned(), signal: None },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A comment.\nwith cluster-autoscaler\n\
        $ echo a; echo; echo b\n    a\n\n    b\n\n\
        start up $ fleetwright up\nwait up 1 line\nshow up 5 lines\n    up\n\
        == both\nfile a.yaml\n    a:\n      b: 1\nuntil $ kubectl get x\n\n\
        == embedded\ninterrupt up\nkill up\nfinish up\n";

    #[test]
    fn a_scenario_with_everything_reads_and_writes_back() {
        let scenario = Scenario::parse("x", TEXT).unwrap();
        assert_eq!(scenario.render(), TEXT);
        assert_eq!(scenario.programs().collect::<Vec<_>>(), [Program::ClusterAutoscaler]);
        assert_eq!(scenario.blocks[2].text, "a\n\nb\n");
        let file = &scenario.blocks[7];
        assert_eq!((&file.step, file.part), (&Step::File("a.yaml".into()), Part::Both));
        assert_eq!(file.text, "a:\n  b: 1\n");
        assert!(scenario.has_real());
        assert_eq!(scenario.blocks[10].part, Part::Embedded);
        assert_eq!(scenario.blocks[11].step, Step::End { name: "up".into(), signal: Some("KILL") });
    }

    #[test]
    fn what_is_not_understood_is_told_with_its_line() {
        for (text, wanted) in [
            ("$ a\nkubectl get x\n", "line 2: not understood: kubectl get x"),
            ("    text\n", "line 1: this text belongs to no step"),
            ("# a\n    text\n", "line 2: this text belongs to no step"),
            ("with another-program\n", "line 1: not understood"),
            ("show up many lines\n", "line 1: not understood"),
            ("", "empty"),
        ] {
            let error = Scenario::parse("x", text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
