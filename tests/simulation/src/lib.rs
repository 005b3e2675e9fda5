//! The tests are in `tests/simulation`.
