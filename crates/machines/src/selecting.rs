//! Label selectors of objects, as the shared rules see them.

use fleetwright_lifecycle::selector::{Requirement, Selector, SelectorError};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Reads a selector.
pub(crate) fn selector(selector: &LabelSelector) -> Result<Selector, SelectorError> {
    let requirements = selector.match_expressions.iter().flatten();
    Ok(Selector {
        match_labels: selector.match_labels.clone().unwrap_or_default(),
        match_expressions: requirements
            .map(|wanted| {
                let values = wanted.values.clone().unwrap_or_default();
                Requirement::parse(&wanted.key, &wanted.operator, values)
            })
            .collect::<Result<_, _>>()?,
    })
}
