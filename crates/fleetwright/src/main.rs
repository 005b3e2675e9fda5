//! Fleetwright: machines for Kubernetes, made, placed, watched and retired
fn main() {}
