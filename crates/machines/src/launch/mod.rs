//! The launcher: from waiting Machines to instances, one for one.
//!
//! The cloud forgets, answers late or not at all, and this process may end at any moment. What
//! keeps one Machine from having two instances, or an instance from having no Machine:
//!
//! 1. Before anything is launched, an [`Intent`](intent::Intent) is on every Machine that it is
//!    for: the token, which of how many, and the digest of the parameters.
//! 2. Tokens derive from the UIDs of the Machines and a count of attempts. Whoever sends the launch
//!    again sends the same, and the cloud answers with the same instances in the same order.
//! 3. What cannot be sent again (parameters changed, members gone) is looked for by tag until it
//!    must have shown ([`LaunchConfig::settle_time`](settings::LaunchConfig)); only then is there a
//!    new attempt.
//! 4. The identifier is saved before anything else that can fail.
//!
//! [`plan`] decides who goes when and with whom, [`assign`] which instance is whose, [`verdict`]
//! what a refusal means, and [`memory`] keeps a full pool from being asked by everybody.
//! [`Launcher`] carries it out; [`orphans`] is for what nobody took.

pub mod assign;
mod carry_out;
pub mod intent;
mod launcher;
pub mod memory;
pub mod orphans;
pub mod plan;
pub mod settings;
pub mod verdict;

pub(crate) use carry_out::own_tags;
pub use launcher::{Candidate, Launcher, LauncherParts, Made, Refused, Standing};
