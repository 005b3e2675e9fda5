//! Conditions of `machine.openshift.io/v1beta1`.

use fleetwright_api::machine::Condition;
use fleetwright_lifecycle::conditions::whole_second;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Puts a condition in its place. Its time moves when anything it says changes, as in all
/// conditions of this API.
pub(crate) fn upsert(conditions: &mut Vec<Condition>, mut condition: Condition, now: Timestamp) {
    let known = conditions.iter().position(|known| known.type_ == condition.type_);
    match known {
        Some(place) if conditions[place].says_the_same(&condition) => return,
        Some(place) => drop(conditions.remove(place)),
        None => {}
    }
    condition.last_transition_time = Time(whole_second(now));
    conditions.push(condition);
    conditions.sort_by(|one, other| one.type_.cmp(&other.type_));
}
