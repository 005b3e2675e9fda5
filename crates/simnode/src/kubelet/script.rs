//! What a simulated container does: it runs for ever, unless its command or an annotation of its
//! pod says when it ends.
//!
//! - `sleep 30`, `sleep 2m`: ends well after that time. `sleep infinity` does not end.
//! - `true`, `false`, `exit 3`: ends at once, with that code.
//! - `sh -c "sleep 5; exit 1"`: the parts one after the other (`;` and `&&`), up to the first
//!   that is none of these, which runs for ever (`echo` takes no time).
//! - Annotations [`RUNS_FOR`] (`30s`) and [`EXIT_CODE`] (`1`) of the pod go before the command.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};

use crate::facts::annotation;

/// Pod annotation: how long its containers run.
pub const RUNS_FOR: &str = "sim.fleetwright.dev/runs-for";
/// Pod annotation: the exit code of its containers, 0 if absent.
pub const EXIT_CODE: &str = "sim.fleetwright.dev/exit-code";
/// Pod annotation: how long its containers take to end when they are told to.
pub const TERMINATES_IN: &str = "sim.fleetwright.dev/terminates-in";
/// Pod annotation: how long after their start its containers are ready.
pub const READY_AFTER: &str = "sim.fleetwright.dev/ready-after";

/// How a container that ends, ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) after: Duration,
    pub(super) code: i32,
}

/// How the container ends; `None` if it does not.
pub(super) fn ending(pod: &Pod, container: &Container) -> Option<Ending> {
    let annotated = annotation(&pod.metadata, RUNS_FOR).and_then(duration);
    let code = annotation(&pod.metadata, EXIT_CODE).and_then(|code| code.parse().ok());
    if annotated.is_some() || code.is_some() {
        return Some(Ending {
            after: annotated.unwrap_or_default(),
            code: code.unwrap_or_default(),
        });
    }
    let words: Vec<&str> =
        container.command.iter().chain(&container.args).flatten().map(String::as_str).collect();
    match words.as_slice() {
        [shell, flag, script] if is_shell(shell) && flag.ends_with('c') => run(script),
        words => run(&words.join(" ")),
    }
}

/// A pod annotation that is a time.
pub(super) fn annotated(pod: &Pod, name: &str) -> Option<Duration> {
    annotation(&pod.metadata, name).and_then(duration)
}

fn is_shell(command: &str) -> bool {
    matches!(command.rsplit('/').next(), Some("sh" | "bash" | "ash"))
}

fn run(script: &str) -> Option<Ending> {
    let mut after = Duration::ZERO;
    let mut code = 0;
    let parts = script.split([';', '\n']).flat_map(|part| part.split("&&"));
    let mut known = false;
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        let words: Vec<&str> = part.split_whitespace().collect();
        code = 0;
        match words.as_slice() {
            ["sleep", time] => after = after.saturating_add(duration(time)?),
            ["exit", number] => {
                return number.parse().ok().map(|code| Ending { after, code });
            }
            ["exit"] => return Some(Ending { after, code }),
            ["true" | "echo", ..] => {}
            ["false"] => code = 1,
            _ => return None,
        }
        known = true;
    }
    known.then_some(Ending { after, code })
}

/// `30`, `1.5s`, `2m`, `1h`.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = match text.char_indices().last()? {
        (at, 's') if !text.ends_with("ms") => (&text[..at], 1.0),
        (at, 'm') => (&text[..at], 60.0),
        (at, 'h') => (&text[..at], 3600.0),
        (at, 'd') => (&text[..at], 86_400.0),
        _ => match text.strip_suffix("ms") {
            Some(number) => (number, 0.001),
            None => (text, 1.0),
        },
    };
    let seconds: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(seconds * unit).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commands() {
        for (command, expected) in [
            (json!([]), None),
            (json!(["nginx"]), None),
            (json!(["sleep", "infinity"]), None),
            (json!(["sleep", "30"]), Some((30.0, 0))),
            (json!(["sleep", "2m"]), Some((120.0, 0))),
            (json!(["sleep", "500ms"]), Some((0.5, 0))),
            (json!(["true"]), Some((0.0, 0))),
            (json!(["false"]), Some((0.0, 1))),
            (json!(["/bin/sh", "-c", "sleep 5; exit 3"]), Some((5.0, 3))),
            (json!(["bash", "-ec", "echo hi && sleep 1\nsleep 2"]), Some((3.0, 0))),
            (json!(["sh", "-c", "sleep 5; serve"]), None),
        ] {
            let container: Container =
                serde_json::from_value(json!({"name": "c", "command": command})).unwrap();
            let found = ending(&Pod::default(), &container);
            let found = found.map(|ending| (ending.after.as_secs_f64(), ending.code));
            assert_eq!(found, expected, "{command}");
        }
    }

    #[test]
    fn annotations_go_first() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {
            "annotations": {RUNS_FOR: "10s", EXIT_CODE: "7"},
        }}))
        .unwrap();
        let ending = ending(&pod, &Container::default()).unwrap();
        assert_eq!((ending.after.as_secs(), ending.code), (10, 7));
    }
}
