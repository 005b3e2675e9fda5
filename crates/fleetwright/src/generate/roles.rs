//! The roles of our controllers, from the table of what they may do.

use fleetwright_api::names::MACHINE_NAMESPACE;
use fleetwright_world::access;

const OPENING: &str = "\
# Who of Fleetwright may do what: a ServiceAccount for the process and for each controller. Written by
# `cargo xtask generate --docs` from the table in crates/world/src/access/table.rs; do not edit.
";

/// ServiceAccounts, roles and bindings, as YAML documents.
pub(super) fn manifest() -> anyhow::Result<String> {
    let objects = crate::crds::yaml(&access::manifests(MACHINE_NAMESPACE))?;
    Ok(format!("{OPENING}{objects}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_to_apply_are_up_to_date() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        let definitions = crate::crds::yaml(&crate::crds::documents().unwrap()).unwrap();
        for (file, wanted) in [("rbac.yaml", manifest().unwrap()), ("crds.yaml", definitions)] {
            let there = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
            assert!(
                there == wanted,
                "deploy/{file} is out of date: run `cargo xtask generate --docs`"
            );
        }
    }
}
