//! Features of an instance.

use fleetwright_api::aws::{
    ConfidentialCompute, CpuOptions, MetadataAuthentication, MetadataServiceOptions,
};

use super::Mistake;
use crate::model::ec2::requests;

/// The families of addresses that a cluster uses, in the words of its Infrastructure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpFamily {
    /// Version 4 alone.
    #[default]
    V4,
    /// Both, version 4 first.
    DualV4First,
    /// Both, version 6 first.
    DualV6First,
}

impl IpFamily {
    /// Reads the word; what is not known is version 4 alone.
    pub fn from_word(word: Option<&str>) -> Self {
        match word {
            Some("DualStackIPv4Primary") => Self::DualV4First,
            Some("DualStackIPv6Primary") => Self::DualV6First,
            _ => Self::V4,
        }
    }
}

/// Processor features.
pub fn cpu_options(
    options: Option<&CpuOptions>,
) -> Result<Option<requests::CpuOptionsRequest>, Mistake> {
    let Some(wanted) = options.and_then(|options| options.confidential_compute.as_ref()) else {
        return Ok(None);
    };
    let encrypted = match wanted {
        ConfidentialCompute::SevSnp => "enabled",
        ConfidentialCompute::Disabled => "disabled",
        ConfidentialCompute::Other(word) if word.is_empty() => return Ok(None),
        ConfidentialCompute::Other(word) => {
            return Err(Mistake(format!(
                "invalid cpuOptions.confidentialCompute {word:?}: allowed values are Disabled, \
                 AMDEncryptedVirtualizationNestedPaging and omitted"
            )));
        }
    };
    Ok(Some(requests::CpuOptionsRequest { amd_sev_snp: Some(encrypted.to_owned()) }))
}

/// How the instance reads about itself.
pub fn metadata_options(
    options: Option<&MetadataServiceOptions>,
    family: IpFamily,
) -> Option<requests::InstanceMetadataOptionsRequest> {
    let tokens = match options.and_then(|options| options.authentication.as_ref()) {
        Some(MetadataAuthentication::Required) => Some("required".to_owned()),
        Some(MetadataAuthentication::Optional) => Some("optional".to_owned()),
        Some(MetadataAuthentication::Other(_)) | None => None,
    };
    let v6 = (family == IpFamily::DualV6First).then(|| "enabled".to_owned());
    (tokens.is_some() || v6.is_some()).then_some(requests::InstanceMetadataOptionsRequest {
        http_tokens: tokens,
        http_protocol_ipv6: v6,
    })
}

/// What the instance is called: with both families, by its identifier, which both resolve.
pub fn private_dns_options(family: IpFamily) -> Option<requests::PrivateDnsNameOptionsRequest> {
    (family != IpFamily::V4).then(|| requests::PrivateDnsNameOptionsRequest {
        enable_resource_name_dns_a_record: Some(true),
        enable_resource_name_dns_aaaa_record: Some(true),
        hostname_type: Some("resource-name".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_and_families_are_said_together() {
        let options: MetadataServiceOptions =
            serde_json::from_value(json!({"authentication": "Optional"})).unwrap();
        let found = metadata_options(Some(&options), IpFamily::DualV6First);
        let expected = json!({"HttpTokens": "optional", "HttpProtocolIpv6": "enabled"});
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
        assert_eq!(metadata_options(None, IpFamily::DualV4First), None);
    }

    #[test]
    fn an_unknown_word_is_a_mistake() {
        let options: CpuOptions =
            serde_json::from_value(json!({"confidentialCompute": "Maybe"})).unwrap();
        assert!(cpu_options(Some(&options)).unwrap_err().0.contains("Maybe"));
    }
}
