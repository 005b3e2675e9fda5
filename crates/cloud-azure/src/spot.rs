//! How a virtual machine is bought.

use fleetwright_api::azure::AzureMachineProviderSpec;
use fleetwright_lifecycle::quantity;
use serde::Serialize;

/// The part of a virtual machine's properties that buys spare capacity; empty at the list price.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpotOptions {
    /// `Spot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<&'static str>,
    /// `Delete`: what is taken back goes away. One that were only deallocated would be paid for, and
    /// never comes back as the Machine that it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_policy: Option<&'static str>,
    /// The price; that on demand where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billing_profile: Option<BillingProfile>,
}

/// The price.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BillingProfile {
    /// The most to pay per hour; -1 is the price on demand.
    pub max_price: f64,
}

/// A price that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("spotVMOptions.maxPrice {0:?} is not a number: give a price such as \"0.05\", or -1")]
pub struct PriceError(pub String);

impl SpotOptions {
    /// What to ask for.
    pub fn of(spec: &AzureMachineProviderSpec) -> Result<Self, PriceError> {
        let Some(options) = &spec.spot_vm_options else { return Ok(Self::default()) };
        let price = options.max_price.as_ref().map(|text| {
            let price = quantity::number(text).ok_or_else(|| PriceError(text.clone()))?;
            Ok(BillingProfile { max_price: price })
        });
        Ok(Self {
            priority: Some("Spot"),
            eviction_policy: Some("Delete"),
            billing_profile: price.transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked(spec: Value) -> Result<Value, String> {
        let spec: AzureMachineProviderSpec = serde_json::from_value(spec).unwrap();
        let found = SpotOptions::of(&spec).map_err(|error| error.to_string())?;
        Ok(serde_json::to_value(found).unwrap())
    }

    #[test]
    fn what_is_asked_for() {
        assert_eq!(asked(json!({})), Ok(json!({})));
        let spot = json!({"priority": "Spot", "evictionPolicy": "Delete"});
        assert_eq!(asked(json!({"spotVMOptions": {}})), Ok(spot.clone()));
        for (price, wanted) in [(json!("100m"), 0.1), (json!(-1), -1.0), (json!("0.25"), 0.25)] {
            let mut spot = spot.clone();
            spot["billingProfile"] = json!({"maxPrice": wanted});
            assert_eq!(asked(json!({"spotVMOptions": {"maxPrice": price}})), Ok(spot));
        }
        let error = asked(json!({"spotVMOptions": {"maxPrice": "cheap"}})).unwrap_err();
        assert!(error.contains("\"cheap\" is not a number"), "{error}");
    }
}
