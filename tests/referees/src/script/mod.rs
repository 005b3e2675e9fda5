//! Request scripts: readable files of HTTP requests, run against a server.
//!
//! ~~~text
//! ## a title starts an interaction; its requests follow
//! POST /api/v1/namespaces/$ns/configmaps
//! {"metadata": {"name": "a"}}
//! $rv = .metadata.resourceVersion
//!
//! ## a request with everything
//! PATCH /api/v1/namespaces/$ns/configmaps/a?fieldManager=me
//! as alice
//! Content-Type: merge-patch
//! ```yaml
//! metadata:
//!   resourceVersion: "$rv"
//! ```
//! repeat 2
//! hide .metadata.managedFields
//! ~~~
//!
//! | line | meaning |
//! |---|---|
//! | `METHOD /path` | a request; `$ns` is the script's own namespace |
//! | `watch NAME GET /path` | a watch that stays open in the background |
//! | `collect NAME 3 events` | what it saw; also `until closed`, `for 300ms`; `with bookmarks` |
//! | `wait until GET /path .json.path == value` | asks until it is so; also `code == 404` |
//! | `forget` | makes the server forget the past; follow it with a `wait until` |
//! | `pause 200ms` | rarely needed |
//! | `as alice` | by token; `as anonymous`, `as token TEXT` |
//! | `Header: value` | a header; the patch types may be short: `merge-patch`, `apply-patch` |
//! | `{...}` or `[...]` | a body on one line |
//! | three backticks | a body on many lines, verbatim; after `yaml`, converted to JSON |
//! | `$(fill:100)` | a hundred letters, in a body or a path |
//! | `$name = .json.path` | keeps a value of the answer |
//! | `repeat 3` | sends the request so many times, each with its own answer |
//! | `unordered` | the causes of a refusal, and warnings, may come in any order |
//! | `show .path`, `hide .path` | compare only, or all but, these parts; `show code` |
//!
//! A script that mentions `$webhook` gets a [`WebhookServer`](crate::webhook::WebhookServer):
//! `$webhook` is its address, `$webhook_ca` what goes into `caBundle`.
//!
//! Lines that start with `#` and a space are comments.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use self::transcript::Selection;
use crate::http_client::Identity;
use crate::json_path::JsonPath;

mod parse;
mod run;
pub mod transcript;
mod variables;
mod watch;

pub use run::run;

/// A parsed script.
#[derive(Debug, Clone)]
pub struct Script {
    /// The file's name without its ending; also the name of the namespace.
    pub name: String,
    steps: Vec<Step>,
    variables: Vec<String>,
    wants_webhooks: bool,
}

impl Script {
    /// Reads a script.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        parse::parse(name, text).with_context(|| format!("script {name}"))
    }

    /// Reads a script file.
    pub fn load(path: &Path) -> Result<Self> {
        let (name, text) = read(path)?;
        Self::parse(&name, &text)
    }

    /// How many titled interactions the script has.
    pub fn interactions(&self) -> usize {
        let mut titles: Vec<&str> = self.steps.iter().map(|step| step.title.as_str()).collect();
        titles.dedup();
        titles.len()
    }
}

/// A file's name without ending, and its text.
pub(crate) fn read(path: &Path) -> Result<(String, String)> {
    let name = path.file_stem().and_then(|name| name.to_str()).context("a file without a name")?;
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((name.to_owned(), text))
}

/// The `.txt` files of a folder beside this package's manifest, sorted, but for the list of
/// accepted differences.
pub fn files(folder: &str) -> Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = Vec::new();
    for entry in
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry.context("cannot read a folder")?.path();
        let is_list = path.ends_with(crate::compare::ACCEPTED_FILE);
        if path.extension().is_some_and(|ending| ending == "txt") && !is_list {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[derive(Debug, Clone)]
struct Step {
    title: String,
    line: usize,
    action: Action,
    captures: Vec<(String, JsonPath)>,
    repeat: usize,
    select: Selection,
}

#[derive(Debug, Clone)]
enum Action {
    Call(Call),
    Watch { name: String, call: Call },
    Collect { name: String, until: Until, bookmarks: bool },
    Wait { call: Call, condition: Condition },
    Forget,
    Pause(Duration),
}

/// A request as it is written, with variables.
#[derive(Debug, Clone, Default)]
struct Call {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
    identity: Identity,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Until {
    Events(usize),
    Closed,
    Passed(Duration),
}

#[derive(Debug, Clone)]
enum Condition {
    Code(u16),
    Value { path: JsonPath, expected: String },
}
