//! Runs a folder of table files and reports.

use std::any::Any;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::pending::Excuse;
use crate::row::Row;
use crate::runners::{Check, Outcome, Runner, Use};
use crate::tables::TableFile;

/// How the rows of one file, or of all, went.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Count {
    /// Rows that do what they should.
    pub passed: usize,
    /// Rows that do not, and files or tables that nobody runs.
    pub failed: usize,
    /// Rows that do not speak of this product, by reason.
    pub not_applicable: BTreeMap<String, usize>,
    /// Rows that wait for work to come.
    pub pending: usize,
}

impl Count {
    fn not_applicable(&self) -> usize {
        self.not_applicable.values().sum()
    }

    fn rows(&self) -> usize {
        self.passed + self.failed + self.not_applicable() + self.pending
    }

    fn excuse(&mut self, reason: &str, rows: usize) {
        *self.not_applicable.entry(reason.to_owned()).or_default() += rows;
    }

    fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.pending += other.pending;
        for (reason, rows) in &other.not_applicable {
            self.excuse(reason, *rows);
        }
    }
}

/// What runs, and on what.
#[derive(Debug)]
pub struct Harness {
    /// One per file.
    pub runners: Vec<Runner>,
    /// The files without one.
    pub excuses: BTreeMap<String, Excuse>,
    /// Only files with one of these in their name, unless there are none.
    pub filters: Vec<String>,
}

/// `FLEETWRIGHT_CASES`, or else `../shared/cases` beside the repository.
pub fn default_folder() -> PathBuf {
    env::var_os("FLEETWRIGHT_CASES").filter(|folder| !folder.is_empty()).map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases"),
        PathBuf::from,
    )
}

impl Harness {
    /// Runs every table file of a folder. The last line written is the summary.
    pub fn run(&self, folder: &Path, out: &mut dyn Write) -> Result<Count> {
        let files = self.files(folder)?;
        if files.is_empty() {
            writeln!(out, "no tables were found in {}", folder.display())?;
        }
        let mut total = Count::default();
        let mut pending_files = 0;
        for path in files {
            let file = TableFile::load(&path)?;
            let count = self.run_file(&file, out)?;
            pending_files += usize::from(count.pending > 0);
            total.add(&count);
        }
        if total.pending > 0 {
            writeln!(out, "pending: {} rows in {pending_files} files", total.pending)?;
        }
        writeln!(
            out,
            "cases: {} passed, {} failed, {} not applicable",
            total.passed,
            total.failed,
            total.not_applicable()
        )?;
        Ok(total)
    }

    fn files(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", folder.display()));
            }
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.context("cannot read the folder of tables")?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let wanted = self.filters.is_empty()
                || self.filters.iter().any(|filter| name.contains(filter.as_str()));
            if wanted && path.extension().is_some_and(|ending| ending == "json") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    fn run_file(&self, file: &TableFile, out: &mut dyn Write) -> Result<Count> {
        let mut count = Count::default();
        let mut complaints = Vec::new();
        let rows = || file.tables().iter().map(|table| table.rows).sum::<usize>();
        let runner = self.runners.iter().find(|runner| runner.file == file.name);
        let excuse = self.excuses.get(&file.name);
        let mut note = String::new();
        match (runner, excuse) {
            (Some(runner), None) => run_tables(file, runner, &mut count, &mut complaints)?,
            (Some(_), Some(_)) => {
                count.failed += 1;
                complaints.push("it has a runner now: remove it from pending.txt".to_owned());
            }
            (None, Some(Excuse::Pending { issue, reason })) => {
                count.pending = rows();
                note = format!("pending for {issue}: {reason}");
            }
            (None, Some(Excuse::NotApplicable { reason })) => count.excuse(reason, rows()),
            (None, None) => {
                count.failed += 1;
                complaints.push(
                    "nobody runs it: add a runner, or an entry in pending.txt with a reason"
                        .to_owned(),
                );
            }
        }
        writeln!(out, "{}", line(&file.name, &count, &note))?;
        for complaint in complaints {
            writeln!(out, "    {complaint}")?;
        }
        Ok(count)
    }
}

/// `file, rows, passed, failed, not applicable (reason)`.
fn line(name: &str, count: &Count, note: &str) -> String {
    let mut parts = vec![
        name.to_owned(),
        format!("{} rows", count.rows()),
        format!("{} passed", count.passed),
        format!("{} failed", count.failed),
    ];
    let reasons: Vec<&str> = count.not_applicable.keys().map(String::as_str).collect();
    parts.push(if reasons.is_empty() {
        "0 not applicable".to_owned()
    } else {
        format!("{} not applicable ({})", count.not_applicable(), reasons.join("; "))
    });
    if !note.is_empty() {
        parts.push(note.to_owned());
    }
    parts.join(", ")
}

fn run_tables(
    file: &TableFile,
    runner: &Runner,
    count: &mut Count,
    complaints: &mut Vec<String>,
) -> Result<()> {
    for table in file.tables() {
        if !runner.tables.iter().any(|(path, _)| *path == table.path) {
            count.failed += 1;
            complaints.push(format!("the runner says nothing of the table {}", table.path));
        }
    }
    for (path, used) in runner.tables {
        let rows = file.rows(path)?;
        match used {
            Use::Context => {}
            Use::NotApplicable(reason) => count.excuse(reason, rows.len()),
            Use::Rows(check) => {
                for row in &rows {
                    match run_row(*check, row) {
                        Outcome::Passed => count.passed += 1,
                        Outcome::NotApplicable(reason) => count.excuse(reason, 1),
                        Outcome::Failed(why) => {
                            count.failed += 1;
                            complaints.push(format!("{row}: {why}"));
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// A panic is the failure of one row, not of the run.
fn run_row(check: Check, row: &Row<'_>) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| check(row)))
        .unwrap_or_else(|panic| Outcome::Failed(format!("panicked: {}", message(&*panic))))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pending;

    /// A made-up product: it adds.
    fn sum(row: &Row<'_>) -> Outcome {
        let Some(inputs) = row.get("in").as_array() else {
            return Outcome::NotApplicable("it adds nothing");
        };
        let found: i64 = inputs.iter().map(|input| input.as_i64().unwrap()).sum();
        let expectation = row.expectation().unwrap();
        Outcome::equal(expectation.value, &json!(found))
    }

    const SUMS: Runner = Runner {
        file: "sums.json",
        tables: &[
            ("cases", Use::Rows(sum)),
            ("people", Use::Context),
            ("webhook.cases", Use::NotApplicable("no webhook adds")),
        ],
    };

    fn run(files: &[(&str, Value)], runners: &[Runner], excuses: &str) -> (Count, String) {
        let folder = tempfile::tempdir().unwrap();
        for (name, document) in files {
            fs::write(folder.path().join(name), document.to_string()).unwrap();
        }
        let harness = Harness {
            runners: runners.to_vec(),
            excuses: pending::parse(excuses).unwrap(),
            filters: Vec::new(),
        };
        let mut out = Vec::new();
        let count = harness.run(folder.path(), &mut out).unwrap();
        (count, String::from_utf8(out).unwrap())
    }

    fn sums(cases: &Value) -> (&'static str, Value) {
        let document = json!({
            "source": ["made up"],
            "people": [{"name": "Ada"}],
            "webhook": {"cases": [{"name": "x"}, {"name": "y"}]},
            "cases": cases,
        });
        ("sums.json", document)
    }

    #[test]
    fn rows_that_pass() {
        let cases = json!([
            {"in": [1, 2], "expect": 3},
            {"in": [1, 2], "expect": 4, "improved": 3},
            {"expect": 3},
        ]);
        let (count, text) = run(&[sums(&cases)], &[SUMS], "");
        assert_eq!((count.passed, count.failed, count.not_applicable()), (2, 0, 3));
        assert_eq!(
            text,
            "sums.json, 5 rows, 2 passed, 0 failed, 3 not applicable \
             (it adds nothing; no webhook adds)\n\
             cases: 2 passed, 0 failed, 3 not applicable\n"
        );
    }

    #[test]
    fn rows_that_fail_are_named() {
        let cases = json!([
            {"name": "wrong", "in": [1], "expect": 2},
            {"in": ["not a number"], "expect": 1},
        ]);
        let (count, text) = run(&[sums(&cases)], &[SUMS], "");
        assert_eq!(count.failed, 2);
        assert!(text.contains("cases[0] (wrong): wanted Number(2), found Number(1)"), "{text}");
        assert!(text.contains("cases[1]: panicked: "), "{text}");
        assert!(text.ends_with("cases: 0 passed, 2 failed, 2 not applicable\n"), "{text}");
    }

    #[test]
    fn a_table_that_nobody_runs_fails() {
        let (name, mut document) = sums(&json!([]));
        document["more"] = json!([{"in": [1], "expect": 1}]);
        let (count, text) = run(&[(name, document)], &[SUMS], "");
        assert_eq!(count.failed, 1);
        assert!(text.contains("the runner says nothing of the table more"), "{text}");
    }

    #[test]
    fn a_file_that_nobody_runs_fails_unless_it_is_listed() {
        let files = [("a.json", json!({"cases": [{}, {}]})), ("b.json", json!({"cases": [{}]}))];
        let (count, text) = run(&files, &[], "b.json - only history\n");
        assert_eq!((count.failed, count.pending, count.not_applicable()), (1, 0, 1));
        assert!(text.contains("nobody runs it"), "{text}");
        let (count, text) = run(&files, &[], "a.json 3 no adder yet\nb.json - only history\n");
        assert_eq!((count.failed, count.pending, count.not_applicable()), (0, 2, 1));
        assert!(text.contains("pending for issue 3: no adder yet"), "{text}");
        assert!(text.contains("\npending: 2 rows in 1 files\n"), "{text}");
    }

    #[test]
    fn an_entry_for_a_file_with_a_runner_is_stale() {
        let (count, text) = run(&[sums(&json!([]))], &[SUMS], "sums.json 3 no adder yet\n");
        assert_eq!(count.failed, 1);
        assert!(text.contains("remove it from pending.txt"), "{text}");
    }

    #[test]
    fn no_folder_no_failure() {
        let harness =
            Harness { runners: Vec::new(), excuses: BTreeMap::new(), filters: Vec::new() };
        let mut out = Vec::new();
        let count = harness.run(Path::new("/nowhere/at/all"), &mut out).unwrap();
        assert_eq!(count, Count::default());
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("no tables were found in /nowhere/at/all\n"), "{text}");
        assert!(text.ends_with("cases: 0 passed, 0 failed, 0 not applicable\n"), "{text}");
    }
}
