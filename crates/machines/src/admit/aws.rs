//! The rules for a provider spec on AWS, in the order in which users know their errors.

use fleetwright_admission::FieldError;
use fleetwright_api::aws::{AWSMachineProviderConfig, Ebs, MarketType, ResourceReference};

use super::findings::Findings;
use super::platform::{Owner, TypeMeta, interruptible};
use super::{Facts, host, placement, unknown};

/// Checks a provider spec.
pub(super) fn check(
    config: &AWSMachineProviderConfig,
    owner: Owner,
    facts: &Facts,
    findings: &mut Findings,
) {
    for field in unknown::fields(config) {
        let detail = format!("Unknown field ({field}) will be ignored");
        findings.warn(FieldError::not_supported("providerSpec.value", field, detail).to_string());
    }
    TypeMeta {
        api_version: config.api_version.as_deref(),
        kind: config.kind.as_deref(),
        known: AWSMachineProviderConfig::API_VERSIONS,
        expected: AWSMachineProviderConfig::KIND,
    }
    .check(findings);
    ami(&config.ami, findings);
    if config.placement.region.is_empty() {
        required("placement.region", "providerSpec.placement.region to be populated", findings);
    }
    if config.instance_type.is_empty() {
        required("instanceType", "providerSpec.instanceType to be populated", findings);
    }
    match &config.user_data_secret {
        None => required("userDataSecret", "providerSpec.userDataSecret to be populated", findings),
        Some(secret) if secret.name.is_empty() => {
            required(
                "userDataSecret.name",
                "providerSpec.userDataSecret.name to be provided",
                findings,
            );
        }
        Some(_) => {}
    }
    match &config.credentials_secret {
        None => {
            required(
                "credentialsSecret",
                "providerSpec.credentialsSecret to be populated",
                findings,
            );
        }
        Some(secret) if facts.missing_secrets.contains(&secret.name) => {
            let detail = "not found. Expected CredentialsSecret to exist";
            let error =
                FieldError::invalid("providerSpec.credentialsSecret", secret.name.as_str(), detail);
            findings.warn(error.to_string());
        }
        Some(_) => {}
    }
    capacity(config, findings);
    if config.is_spot() {
        let asked = config.spot_market_options.as_ref().map(|_| "providerSpec.spotMarketOptions");
        interruptible(asked.unwrap_or(MARKET), owner, facts, findings);
    }
    network(config, findings);
    block_devices(config, findings);
    host::check(&config.placement, owner, findings);
    placement::check(config, owner, facts, findings);
    tags(config, findings);
    options(config, findings);
}

/// A field that must be filled in.
fn required(field: &str, what: &str, findings: &mut Findings) {
    findings
        .error(FieldError::required(format!("providerSpec.{field}"), format!("expected {what}")));
}

fn ami(ami: &ResourceReference, findings: &mut Findings) {
    if ami.id.is_none() {
        required("ami", "providerSpec.ami.id to be populated", findings);
    }
    let used = [("arn", ami.arn.is_some()), ("filters", !ami.filters.is_empty())];
    for (field, _) in used.into_iter().filter(|(_, used)| *used) {
        findings.warn(format!(
            "can't use providerSpec.ami.{field}, only providerSpec.ami.id can be used to reference \
             AMI"
        ));
    }
}

const RESERVATION: &str = "providerSpec.capacityReservationId";
const MARKET: &str = "providerSpec.marketType";

/// Reservations and markets, which exclude each other in part.
fn capacity(config: &AWSMachineProviderConfig, findings: &mut Findings) {
    let reservation = config.capacity_reservation_id.as_str();
    let spot = config.spot_market_options.is_some();
    if !reservation.is_empty() && !is_reservation(reservation) {
        findings.error(FieldError::invalid(
            RESERVATION,
            reservation,
            format!(
                "invalid value for capacityReservationId: {reservation:?}, it must start with \
                 'cr-' and be exactly 20 characters long with 17 hexadecimal characters"
            ),
        ));
    }
    let market = config.market_type.as_ref().map_or("", MarketType::as_str);
    let mut wrong = |detail: &str| findings.error(FieldError::invalid(MARKET, market, detail));
    match config.market_type.as_ref() {
        Some(MarketType::CapacityBlock) => {
            if spot {
                wrong(
                    "invalid marketType: marketType set to CapacityBlock and spotMarketOptions \
                     cannot be used together",
                );
            }
            if reservation.is_empty() {
                wrong("capacityReservationID is required when CapacityBlock is provided");
            }
        }
        Some(MarketType::OnDemand) if spot => wrong(
            "invalid marketType: setting marketType to OnDemand and spotMarketOptions cannot be \
             used together",
        ),
        Some(MarketType::Spot) if !reservation.is_empty() => wrong(
            "invalid marketType: marketType set to Spot and capacityReservationID may not be used \
             together",
        ),
        Some(MarketType::OnDemand | MarketType::Spot) => {}
        Some(MarketType::Other(other)) if !other.is_empty() => wrong(&format!(
            "invalid marketType: {other} valid values are: OnDemand, Spot, CapacityBlock and omitted"
        )),
        None | Some(MarketType::Other(_)) => {
            if spot && !reservation.is_empty() {
                findings.error(FieldError::invalid(
                    RESERVATION,
                    reservation,
                    "spotMarketOptions and capacityReservationID may not be used together",
                ));
            }
        }
    }
}

/// `cr-` and 17 hexadecimal digits.
fn is_reservation(id: &str) -> bool {
    id.strip_prefix("cr-").is_some_and(|rest| rest.len() == 17 && is_lower_hex(rest))
}

/// Digits and the letters a to f.
pub(super) fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn network(config: &AWSMachineProviderConfig, findings: &mut Findings) {
    let subnet = &config.subnet;
    if subnet.arn.is_none() && subnet.id.is_none() && subnet.filters.is_empty() {
        findings.warn(
            "providerSpec.subnet: No subnet has been provided. Instances may be created in an \
             unexpected subnet and may not join the cluster.",
        );
    }
    if subnet.arn.is_some() {
        findings.warn(
            "can't use providerSpec.subnet.arn, only providerSpec.subnet.id or \
             providerSpec.subnet.filters can be used to reference Subnet",
        );
    }
    let Some(profile) = &config.iam_instance_profile else {
        findings.warn(
            "providerSpec.iamInstanceProfile: no IAM instance profile provided: nodes may be \
             unable to join the cluster",
        );
        return;
    };
    let used = [("arn", profile.arn.is_some()), ("filters", !profile.filters.is_empty())];
    for (field, _) in used.into_iter().filter(|(_, used)| *used) {
        findings.warn(format!(
            "can't use providerSpec.iamInstanceProfile.{field}, only \
             providerSpec.iamInstanceProfile.id can be used to reference IAMInstanceProfile"
        ));
    }
}

/// Throughput is a matter of gp3 volumes.
fn block_devices(config: &AWSMachineProviderConfig, findings: &mut Findings) {
    let volumes = config.block_devices.iter().enumerate();
    for (place, volume) in volumes.filter_map(|(place, device)| Some((place, device.ebs.as_ref()?)))
    {
        let Ebs { volume_type: Some(type_), throughput_mib: Some(throughput), .. } = volume else {
            continue;
        };
        let detail = if type_ != "gp3" {
            "only valid for gp3 volumes"
        } else if !(125..=2000).contains(throughput) {
            "must be a value between 125 and 2000"
        } else {
            continue;
        };
        let field = format!("providerSpec.blockDevices[{place}].ebs.throughputMib");
        findings.error(FieldError::invalid(field, *throughput, detail));
    }
}

/// EC2 would refuse a second tag of one name, so only the first is sent.
fn tags(config: &AWSMachineProviderConfig, findings: &mut Findings) {
    let names: Vec<&str> = config.tags.iter().map(|tag| tag.name.as_str()).collect();
    let mut duplicated: Vec<&str> = Vec::new();
    for (place, name) in names.iter().enumerate() {
        if names[..place].contains(name) && !duplicated.contains(name) {
            duplicated.push(name);
        }
    }
    if !duplicated.is_empty() {
        findings.warn(format!(
            "providerSpec.tags: duplicated tag names ({}): only the first value will be used.",
            duplicated.join(",")
        ));
    }
}

/// Options whose values are words.
fn options(config: &AWSMachineProviderConfig, findings: &mut Findings) {
    if let Some(type_) = &config.network_interface_type
        && !type_.is_known()
        && !type_.as_str().is_empty()
    {
        findings.error(FieldError::invalid(
            "providerSpec.networkInterfaceType",
            type_.as_str(),
            "Valid values are: ENA, EFA and omitted",
        ));
    }
    let metadata = config.metadata_service_options.as_ref();
    if let Some(word) = metadata.and_then(|options| options.authentication.as_ref())
        && !word.is_known()
        && !word.as_str().is_empty()
    {
        findings.error(FieldError::invalid(
            "providerSpec.metadataServiceOptions.authentication",
            word.as_str(),
            "Allowed values are either 'Optional' or 'Required'",
        ));
    }
    let Some(cpu) = &config.cpu_options else { return };
    match &cpu.confidential_compute {
        None => findings.error(FieldError::invalid(
            "providerSpec.CPUOptions",
            "{}",
            "At least one field must be set if cpuOptions is provided",
        )),
        // Unlike the others, this one is not absent when it is empty.
        Some(word) if !word.is_known() => findings.error(FieldError::invalid(
            "providerSpec.CPUOptions.ConfidentialCompute",
            word.as_str(),
            "Allowed values are Disabled, AMDEncryptedVirtualizationNestedPaging and omitted",
        )),
        Some(_) => {}
    }
}
