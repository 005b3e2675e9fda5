//! Chores: referees, generated files, benchmarks
fn main() {}
