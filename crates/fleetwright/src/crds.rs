//! `fleetwright crds`.

/// Prints the definitions. There are none before the machine controllers come.
pub(crate) fn run() {
    eprintln!("fleetwright: this version defines no kinds of its own yet");
}
