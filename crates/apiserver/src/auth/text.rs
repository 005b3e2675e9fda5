//! Lists in messages.

use fleetwright_kschema::gotext::quote;

/// A list of strings as Go prints it with `%q`: `["a" "b"]`.
pub(crate) fn quoted_list(list: &[String]) -> String {
    let items: Vec<String> = list.iter().map(|item| quote(item)).collect();
    format!("[{}]", items.join(" "))
}
