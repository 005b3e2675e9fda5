//! Removes what Fleetwright made for a cluster, and nothing else.
//!
//! A [`Survey`] is what the cloud shows of the cluster; [`plan()`] says what of it goes, in which
//! order, what is in the way and what is left alone; [`destroy`] carries the plan out, one step after
//! the other, each from a new survey. Nothing is remembered between steps: whoever is killed starts
//! again and goes on.

mod carry_out;
mod plan;
mod survey;
mod text;

pub use carry_out::{DestroyError, Options, Outcome, destroy};
pub use plan::{Blocked, Item, Kind, Outlook, Plan, Refusals, Step, Untouched, plan};
pub use survey::Survey;
