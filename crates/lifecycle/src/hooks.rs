//! Lifecycle hooks: names under which others hold back the drain or the end of a Machine.

use crate::conditions::{Condition, SEVERITY_WARNING};

/// Condition: nobody holds back the drain.
pub const DRAINABLE: &str = "Drainable";
/// Condition: nobody holds back the end of the instance.
pub const TERMINABLE: &str = "Terminable";
/// Reason of both when somebody does.
pub const HOOK_PRESENT: &str = "HookPresent";

/// One hook.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hook {
    /// What it is for.
    pub name: String,
    /// Who will take it away.
    pub owner: String,
}

/// The conditions that a Machine's hooks amount to.
pub fn conditions(pre_drain: &[Hook], pre_terminate: &[Hook]) -> [Condition; 2] {
    [condition(DRAINABLE, "Drain", pre_drain), condition(TERMINABLE, "Terminate", pre_terminate)]
}

fn condition(kind: &str, operation: &str, hooks: &[Hook]) -> Condition {
    if hooks.is_empty() {
        return Condition::holds(kind);
    }
    let listed: Vec<String> =
        hooks.iter().map(|hook| format!("{{Name:{} Owner:{}}}", hook.name, hook.owner)).collect();
    let message = format!("{operation} operation currently blocked by: [{}]", listed.join(" "));
    Condition::fails(kind, HOOK_PRESENT, SEVERITY_WARNING, message)
}
