//! The provider adapters against the simulated clouds: two independent readings of each protocol.
//! See `tests/clouds`.
