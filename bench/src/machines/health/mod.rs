//! Health checks: how fast the sick are deleted, and what a check costs that does nothing.

pub(crate) mod embedded;
pub(crate) mod hundred;
mod sick;
