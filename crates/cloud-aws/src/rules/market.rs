//! How an instance is bought.

use fleetwright_api::aws::{AWSMachineProviderConfig, MarketType};

use super::Mistake;
use crate::model::ec2::requests;

/// On demand (none), on the spot market, or from a block of capacity bought before.
pub fn market_options(
    config: &AWSMachineProviderConfig,
) -> Result<Option<requests::InstanceMarketOptionsRequest>, Mistake> {
    let mistake = |text: &str| Err(Mistake(text.to_owned()));
    let spot = config.spot_market_options.as_ref();
    let reserved = !config.capacity_reservation_id.is_empty();
    let said = config.market_type.as_ref().filter(|market| !market.as_str().is_empty());
    match (said, spot) {
        (None, None) | (Some(MarketType::OnDemand), _) => Ok(None),
        (None, Some(_)) if reserved => {
            mistake("spotMarketOptions and capacityReservationID may not be used together")
        }
        (Some(MarketType::Spot), _) if reserved => mistake(
            "invalid marketType: marketType set to Spot and capacityReservationID may not be used \
             together",
        ),
        (None | Some(MarketType::Spot), _) => {
            let price = spot.and_then(|spot| spot.max_price.clone());
            Ok(Some(requests::InstanceMarketOptionsRequest {
                market_type: Some("spot".to_owned()),
                // One request, one instance, gone when it is taken back: one Machine has one
                // instance and never another.
                spot_options: Some(requests::SpotMarketOptions {
                    instance_interruption_behavior: Some("terminate".to_owned()),
                    spot_instance_type: Some("one-time".to_owned()),
                    max_price: price.filter(|price| !price.is_empty()),
                }),
            }))
        }
        (Some(MarketType::CapacityBlock), Some(_)) => mistake(
            "invalid marketType: marketType set to CapacityBlock and spotMarketOptions cannot be \
             used together",
        ),
        (Some(MarketType::CapacityBlock), None) if !reserved => {
            mistake("capacityReservationID is required when CapacityBlock is provided")
        }
        (Some(MarketType::CapacityBlock), None) => {
            Ok(Some(requests::InstanceMarketOptionsRequest {
                market_type: Some("capacity-block".to_owned()),
                spot_options: None,
            }))
        }
        (Some(MarketType::Other(word)), _) => Err(Mistake(format!(
            "invalid marketType: {word} valid values are: OnDemand, Spot, CapacityBlock and omitted"
        ))),
    }
}

/// The capacity reservation to launch into.
pub fn capacity_reservation(
    id: &str,
) -> Result<Option<requests::CapacityReservationSpecification>, Mistake> {
    if id.is_empty() {
        return Ok(None);
    }
    let digits = id.strip_prefix("cr-").unwrap_or_default();
    let hexadecimal = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    if digits.len() != 17 || !digits.bytes().all(hexadecimal) {
        return Err(Mistake(format!(
            "Invalid value for capacityReservationId: {id:?}, it must start with 'cr-' and be \
             exactly 20 characters long with 17 hexadecimal characters."
        )));
    }
    Ok(Some(requests::CapacityReservationSpecification {
        capacity_reservation_target: Some(requests::CapacityReservationTarget {
            capacity_reservation_id: Some(id.to_owned()),
        }),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn market(spec: Value) -> Result<Value, Mistake> {
        let config: AWSMachineProviderConfig = serde_json::from_value(spec).unwrap();
        Ok(serde_json::to_value(market_options(&config)?).unwrap())
    }

    #[test]
    fn how_it_is_bought() {
        assert_eq!(market(json!({"marketType": ""})).unwrap(), Value::Null);
        let both = json!({"marketType": "OnDemand", "spotMarketOptions": {}});
        assert_eq!(market(both).unwrap(), Value::Null);
        let spot = market(json!({"marketType": "Spot"})).unwrap();
        assert_eq!(spot["MarketType"], "spot");
        assert_eq!(spot["SpotOptions"].get("MaxPrice"), None);
        let error = market(json!({"marketType": "CapacityBlock"})).unwrap_err();
        assert!(error.0.contains("capacityReservationID is required"));
        assert!(market(json!({"marketType": "Auction"})).unwrap_err().0.contains("Auction"));
    }

    #[test]
    fn reservations() {
        let id = "cr-0123456789abcdef0";
        let found = serde_json::to_value(capacity_reservation(id).unwrap()).unwrap();
        assert_eq!(found, json!({"CapacityReservationTarget": {"CapacityReservationId": id}}));
        assert!(capacity_reservation("cr-0123456789ABCDEF0").is_err());
        assert!(capacity_reservation("xx-0123456789abcdef0").is_err());
    }
}
