//! Validation rules: `x-kubernetes-validations`.

mod check;
mod escape;
mod eval;
mod field_path;
mod functions;
mod library;
mod numbers;
mod positions;
mod program;
mod rules;
mod signatures;
mod types;
mod url;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use field_path::{PathOptions, resolve_field_path};
pub(crate) use rules::{RuleIssue, Rules, check_rules, shown_rule};
