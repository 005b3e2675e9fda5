//! Reads scripts.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::transcript::Selection;
use super::{Action, Call, Condition, Script, Step, Until};
use crate::http_client::Identity;
use crate::json_path::JsonPath;

const FENCE: &str = "```";

pub(super) fn parse(name: &str, text: &str) -> Result<Script> {
    let mut reader = Reader { title: None, steps: Vec::new() };
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let number = index + 1;
        if let Some(language) = line.trim_end().strip_prefix(FENCE) {
            let mut body = Vec::new();
            loop {
                let (_, line) =
                    lines.next().with_context(|| format!("line {number}: the body never ends"))?;
                if line.trim_end() == FENCE {
                    break;
                }
                body.push(line);
            }
            reader.body(language, &body.join("\n")).with_context(|| format!("line {number}"))?;
        } else {
            reader.line(number, line.trim_end()).with_context(|| format!("line {number}"))?;
        }
    }
    let variables = reader
        .steps
        .iter()
        .flat_map(|step| step.captures.iter().map(|(name, _)| name.clone()))
        .chain(["ns", "webhook", "webhook_ca"].map(str::to_owned))
        .collect();
    let wants_webhooks = text.contains("$webhook");
    Ok(Script { name: name.to_owned(), steps: reader.steps, variables, wants_webhooks })
}

struct Reader {
    title: Option<String>,
    steps: Vec<Step>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<()> {
        if let Some(title) = line.strip_prefix("## ") {
            let repeated = self.steps.iter().any(|step| step.title == title);
            ensure!(!repeated, "two interactions have the title {title:?}");
            self.title = Some(title.to_owned());
            return Ok(());
        }
        if line.is_empty() || line.starts_with("# ") || line == "#" {
            return Ok(());
        }
        if let Some(action) = action(line)? {
            let title = self.title.clone().context("a request before the first `## title`")?;
            self.steps.push(Step {
                title,
                line: number,
                action,
                captures: Vec::new(),
                repeat: 1,
                select: Selection::default(),
            });
            return Ok(());
        }
        self.modifier(line)
    }

    fn last(&mut self) -> Result<&mut Step> {
        self.steps.last_mut().context("nothing to apply this line to")
    }

    fn call(&mut self) -> Result<&mut Call> {
        match &mut self.last()?.action {
            Action::Call(call) | Action::Watch { call, .. } | Action::Wait { call, .. } => Ok(call),
            Action::Collect { .. } | Action::Forget | Action::Pause(_) => {
                bail!("this line belongs to a request")
            }
        }
    }

    fn modifier(&mut self, line: &str) -> Result<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if line.starts_with(['{', '[']) {
            return self.body("", line);
        }
        if let Some(name) = word.strip_prefix('$') {
            let path = rest.strip_prefix("= ").context("write `$name = .path`")?;
            let capture = (name.to_owned(), JsonPath::parse(path)?);
            self.last()?.captures.push(capture);
            return Ok(());
        }
        if let Some(header) = word.strip_suffix(':') {
            let header = (header.to_owned(), media_type(rest.trim()).to_owned());
            self.call()?.headers.push(header);
            return Ok(());
        }
        match word {
            "as" => self.call()?.identity = identity(rest),
            "repeat" => self.last()?.repeat = rest.parse().context("repeat how often?")?,
            "unordered" if rest.is_empty() => self.last()?.select.unordered = true,
            "show" if rest == "code" => self.last()?.select.code_only = true,
            "show" => {
                let path = JsonPath::parse(rest)?;
                self.last()?.select.show.push((rest.to_owned(), path));
            }
            "hide" => {
                let path = JsonPath::parse(rest)?;
                self.last()?.select.hide.push(path);
            }
            _ => bail!("not understood: {line}"),
        }
        Ok(())
    }

    fn body(&mut self, language: &str, text: &str) -> Result<()> {
        let body = match language {
            "" => text.to_owned(),
            "yaml" => {
                let value: Value = serde_saphyr::from_str(text).context("the body is not YAML")?;
                value.to_string()
            }
            other => bail!("a body is verbatim or yaml, not {other}"),
        };
        let call = self.call()?;
        ensure!(call.body.is_none(), "a request has one body");
        call.body = Some(body);
        Ok(())
    }
}

/// What a line asks to do, if it starts an action.
fn action(line: &str) -> Result<Option<Action>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Ok(Some(match words.as_slice() {
        ["watch", name, method, target] => {
            Action::Watch { name: (*name).to_owned(), call: call(method, target) }
        }
        ["collect", name, rest @ ..] => {
            let (rest, bookmarks) = match rest {
                [rest @ .., "with", "bookmarks"] => (rest, true),
                _ => (rest, false),
            };
            Action::Collect { name: (*name).to_owned(), until: until(rest)?, bookmarks }
        }
        ["wait", "until", method, target, rest @ ..] => {
            let (left, expected) = match rest {
                [left, "==", expected @ ..] => (*left, expected.join(" ")),
                _ => bail!("write `wait until GET /path .path == value`"),
            };
            let condition = if left == "code" {
                Condition::Code(expected.parse().context("not a status code")?)
            } else {
                Condition::Value { path: JsonPath::parse(left)?, expected }
            };
            Action::Wait { call: call(method, target), condition }
        }
        ["forget"] => Action::Forget,
        ["pause", time] => Action::Pause(duration(time)?),
        [method, target]
            if method.chars().all(|c| c.is_ascii_uppercase()) && target.starts_with('/') =>
        {
            Action::Call(call(method, target))
        }
        _ => return Ok(None),
    }))
}

fn call(method: &str, target: &str) -> Call {
    Call { method: method.to_owned(), target: target.to_owned(), ..Call::default() }
}

fn until(words: &[&str]) -> Result<Until> {
    Ok(match words {
        [count, "event" | "events"] => Until::Events(count.parse().context("how many events?")?),
        ["until", "closed"] => Until::Closed,
        ["for", time] => Until::Passed(duration(time)?),
        _ => bail!("write `N events`, `until closed` or `for 300ms`"),
    })
}

fn duration(text: &str) -> Result<Duration> {
    let number = text.strip_suffix("ms").context("write a time like 300ms")?;
    Ok(Duration::from_millis(number.parse().context("not a number of milliseconds")?))
}

fn identity(text: &str) -> Identity {
    match text.split_once(' ') {
        Some(("token", token)) => Identity::Token(token.to_owned()),
        _ if text == "anonymous" => Identity::Anonymous,
        _ if text == "admin" => Identity::Admin,
        _ => Identity::User(text.to_owned()),
    }
}

/// The long names of the patch types, which scripts may shorten.
fn media_type(text: &str) -> &str {
    match text {
        "json-patch" => "application/json-patch+json",
        "merge-patch" => "application/merge-patch+json",
        "strategic-patch" => "application/strategic-merge-patch+json",
        "apply-patch" => "application/apply-patch+yaml",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_with_everything() {
        let text = "\
# a comment
## first
POST /api/v1/namespaces/$ns/configmaps
as alice
{\"a\": 1}
$rv = .metadata.resourceVersion
repeat 2

## second
watch w GET /api/v1/pods?watch=1
collect w 2 events with bookmarks
PATCH /x
Content-Type: merge-patch
```yaml
a: [1, 2]
```
wait until GET /x .status.conditions[?type=Ready].status == True
wait until GET /x code == 404
";
        let script = parse("x", text).unwrap();
        assert_eq!(script.interactions(), 2);
        assert_eq!(script.steps.len(), 6);
        assert_eq!(script.variables, ["rv", "ns", "webhook", "webhook_ca"]);
        assert!(!script.wants_webhooks);
        let Action::Call(first) = &script.steps[0].action else { panic!("not a call") };
        assert_eq!(first.identity, Identity::User("alice".into()));
        assert_eq!(first.body.as_deref(), Some("{\"a\": 1}"));
        assert_eq!(script.steps[0].repeat, 2);
        let Action::Call(patch) = &script.steps[3].action else { panic!("not a call") };
        assert_eq!(patch.body.as_deref(), Some("{\"a\":[1,2]}"));
        assert_eq!(patch.headers[0].1, "application/merge-patch+json");
    }

    #[test]
    fn mistakes_name_the_line() {
        for (text, message) in [
            ("GET /x", "before the first"),
            ("## a\nGET /x\nnonsense", "line 3"),
            ("## a\nGET /x\n```\nnever closed", "never ends"),
            ("## a\nGET /x\n## a\n", "two interactions"),
            ("## a\npause 1s", "like 300ms"),
        ] {
            let error = format!("{:#}", parse("x", text).unwrap_err());
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
