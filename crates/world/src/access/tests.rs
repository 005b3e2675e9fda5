//! The table is well formed.

use std::collections::BTreeSet;

use super::*;

#[test]
fn the_process_may_act_as_every_controller_and_nobody_else() {
    let process = IDENTITIES.iter().find(|identity| identity.name == PROCESS).unwrap();
    let impersonate =
        process.rights.iter().find(|right| right.verbs.contains(&"impersonate")).unwrap();
    let others = IDENTITIES.iter().filter(|identity| identity.name != PROCESS);
    let others: BTreeSet<String> = others.map(|identity| account(identity.name)).collect();
    let allowed: BTreeSet<String> = impersonate.names.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, others);
}
