//! What is wrong with a launch whatever the region holds.

use super::super::{
    error::{ApiError, Outcome},
    instance::{CpuOptions, MetadataOptions, SpotOptions},
    types::{self, InstanceType},
};
use super::request::{LaunchRequest, MetadataRequest};

/// Tags may be given for these.
const TAGGABLE: &[&str] = &["instance", "volume", "network-interface", "spot-instances-request"];
const LONGEST_USER_DATA: usize = 16_384;
const LONGEST_TOKEN: usize = 64;

pub(super) fn counts(request: &LaunchRequest, most: u32) -> Outcome<(u32, u32)> {
    let positive = |name: &str, value: i64| {
        u32::try_from(value).ok().filter(|v| *v > 0).ok_or_else(|| {
            ApiError::invalid(format!(
                "Value ({value}) for parameter {name} is invalid. Expecting a value greater than \
                 or equal to 1."
            ))
        })
    };
    let (min, max) = (positive("minCount", request.min)?, positive("maxCount", request.max)?);
    if min > max {
        return Err(ApiError::invalid(format!(
            "Value ({max}) for parameter maxCount is invalid. It must be greater than or equal to \
             minCount ({min})."
        )));
    }
    if max > most {
        return Err(ApiError::client(
            "ResourceCountExceeded",
            format!("You cannot request more than {most} instances in one call."),
        ));
    }
    Ok((min, max))
}

/// What is wrong with the request whatever the region holds.
pub(super) fn check_plain(request: &LaunchRequest) -> Outcome<()> {
    if let Some(token) = &request.token
        && (token.is_empty() || token.len() > LONGEST_TOKEN || !token.is_ascii())
    {
        return Err(ApiError::invalid(format!(
            "Value ({token}) for parameter clientToken is invalid. It may have up to \
             {LONGEST_TOKEN} ASCII characters."
        )));
    }
    if request.user_data.as_ref().is_some_and(|data| data.len() > LONGEST_USER_DATA) {
        return Err(ApiError::invalid(format!(
            "User data is limited to {LONGEST_USER_DATA} bytes"
        )));
    }
    if let Some(kind) = request.tags.keys().find(|kind| !TAGGABLE.contains(&kind.as_str())) {
        return Err(ApiError::invalid(format!(
            "'{kind}' is not a valid taggable resource type for this operation."
        )));
    }
    if request.tags.contains_key("spot-instances-request")
        && request.market.as_deref() != Some("spot")
    {
        return Err(ApiError::combination(
            "The tag specification for 'spot-instances-request' requires the Spot market type.",
        ));
    }
    Ok(())
}

pub(super) fn instance_type(request: &LaunchRequest) -> Outcome<&'static InstanceType> {
    // EC2's own default is a type of 2006 that no VPC offers any more.
    let name = request.instance_type.as_deref().unwrap_or("m1.small");
    types::find(name)
        .ok_or_else(|| ApiError::invalid(format!("Invalid value '{name}' for InstanceType.")))
}

pub(super) fn spot_options(
    request: &LaunchRequest,
    of: &InstanceType,
) -> Outcome<Option<SpotOptions>> {
    let spot = &request.spot;
    match request.market.as_deref() {
        Some("spot") => {}
        None | Some("capacity-block") if spot.is_empty() => return Ok(None),
        None | Some("capacity-block") => {
            return Err(ApiError::combination(
                "SpotOptions may only be specified with the Spot market type.",
            ));
        }
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "Value ({other}) for parameter marketType is invalid."
            )));
        }
    }
    if !of.usage_classes.contains(&"spot") {
        return Err(ApiError::client(
            "UnsupportedOperation",
            format!("The instance type '{}' does not support Spot Instances.", of.name),
        ));
    }
    let max_price = match spot.max_price.as_deref() {
        None => None,
        Some(text) => Some(types::micros(text).ok_or_else(|| {
            ApiError::invalid(format!("Invalid value '{text}' for maxPrice. Expecting a number."))
        })?),
    };
    let persistent = match spot.kind.as_deref() {
        None | Some("one-time") => false,
        Some("persistent") => true,
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "Value ({other}) for parameter spotInstanceType is invalid."
            )));
        }
    };
    let interruption = spot.interruption.clone().unwrap_or_else(|| "terminate".to_owned());
    match (interruption.as_str(), persistent) {
        ("terminate", _) => {}
        ("stop" | "hibernate", true) => {
            let placement = &request.placement;
            if placement.group_name.is_some() || placement.group_id.is_some() {
                return Err(ApiError::combination(
                    "Spot Instances that stop or hibernate when interrupted cannot be launched \
                     into a placement group.",
                ));
            }
        }
        ("stop" | "hibernate", false) => {
            return Err(ApiError::combination(format!(
                "One-time Spot Instance requests do not support the interruption behavior \
                 '{interruption}'."
            )));
        }
        _ => {
            return Err(ApiError::invalid(format!(
                "Value ({interruption}) for parameter instanceInterruptionBehavior is invalid."
            )));
        }
    }
    Ok(Some(SpotOptions { max_price, persistent, interruption }))
}

pub(super) fn one_of(name: &str, value: Option<&String>, allowed: &[&str]) -> Outcome<String> {
    let value = value.map_or(allowed[0], String::as_str);
    if allowed.contains(&value) {
        return Ok(value.to_owned());
    }
    Err(ApiError::invalid(format!("Value ({value}) for parameter {name} is invalid.")))
}

pub(super) fn metadata(request: &MetadataRequest) -> Outcome<MetadataOptions> {
    let hops = request.hop_limit.unwrap_or(1);
    let hop_limit = u32::try_from(hops).ok().filter(|hops| (1..=64).contains(hops));
    Ok(MetadataOptions {
        tokens: one_of("httpTokens", request.tokens.as_ref(), &["optional", "required"])?,
        hop_limit: hop_limit.ok_or_else(|| {
            ApiError::invalid(format!(
                "Value ({hops}) for parameter httpPutResponseHopLimit is invalid."
            ))
        })?,
        endpoint: one_of("httpEndpoint", request.endpoint.as_ref(), &["enabled", "disabled"])?,
        ipv6: one_of("httpProtocolIpv6", request.ipv6.as_ref(), &["disabled", "enabled"])?,
        tags: one_of("instanceMetadataTags", request.tags.as_ref(), &["disabled", "enabled"])?,
    })
}

pub(super) fn cpu(request: &LaunchRequest, of: &InstanceType) -> Outcome<CpuOptions> {
    let (cores, threads, sev_snp) = &request.cpu;
    let default_threads = of.vcpus / of.cores.max(1);
    let cores = cores.map_or(Some(of.cores), |c| u32::try_from(c).ok());
    let cores = cores.filter(|c| (1..=of.cores).contains(c)).ok_or_else(|| {
        ApiError::invalid(format!("CpuOptions.CoreCount is not valid for {}.", of.name))
    })?;
    let threads = threads.map_or(Some(default_threads), |t| u32::try_from(t).ok());
    let threads = threads.filter(|t| (1..=default_threads).contains(t)).ok_or_else(|| {
        ApiError::invalid(format!("CpuOptions.ThreadsPerCore is not valid for {}.", of.name))
    })?;
    if let Some(value) = sev_snp {
        one_of("amdSevSnp", Some(value), &["enabled", "disabled"])?;
        if value == "enabled" && of.manufacturer != "AMD" {
            return Err(ApiError::client(
                "UnsupportedOperation",
                format!("The instance type '{}' does not support AMD SEV-SNP.", of.name),
            ));
        }
    }
    Ok(CpuOptions { cores, threads, sev_snp: sev_snp.clone() })
}
