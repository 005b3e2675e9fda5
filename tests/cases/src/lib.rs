//! Runs the behaviour tables.
