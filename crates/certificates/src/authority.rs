//! A certificate authority of our own.

use std::{collections::BTreeSet, fmt, net::IpAddr};

use fleetwright_clock::Clock;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use x509_parser::{extensions::GeneralName, pem::parse_x509_pem};

/// How long certificates are valid. They are made again when they are near their end.
const VALIDITY: SignedDuration = SignedDuration::from_hours(24 * 365);
/// Clocks differ: what is made now is valid a little earlier.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Why a certificate could not be made or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt}")]
pub struct CertificateError {
    attempt: &'static str,
    source: rcgen::Error,
}

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl fmt::Debug for Identity {
    /// The key is nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Signs certificates of the server and its users.
pub struct Authority {
    /// The authority's own certificate and key.
    pub identity: Identity,
    clock: Clock,
}

fn failed(attempt: &'static str) -> impl Fn(rcgen::Error) -> CertificateError {
    move |source| CertificateError { attempt, source }
}

impl Authority {
    /// A new authority.
    pub fn generate(clock: &Clock) -> Result<Self, CertificateError> {
        let failed = failed("make a certificate authority");
        let key = KeyPair::generate().map_err(&failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "fleetwright-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::CrlSign,
        ];
        set_validity(&mut params, clock, VALIDITY * 10);
        let certificate = params.self_signed(&key).map_err(&failed)?;
        let identity = Identity { certificate: certificate.pem(), key: key.serialize_pem() };
        Ok(Self { identity, clock: clock.clone() })
    }

    /// An authority that was made before.
    pub fn load(identity: Identity, clock: &Clock) -> Self {
        Self { identity, clock: clock.clone() }
    }

    /// A certificate for a server with these names and addresses.
    pub fn server(
        &self,
        names: &[&str],
        addresses: &[IpAddr],
    ) -> Result<Identity, CertificateError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "fleetwright");
        for name in names {
            if let Ok(name) = (*name).try_into() {
                params.subject_alt_names.push(SanType::DnsName(name));
            }
        }
        params.subject_alt_names.extend(addresses.iter().map(|ip| SanType::IpAddress(*ip)));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A certificate for a user in a group.
    pub fn client(&self, user: &str, group: &str) -> Result<Identity, CertificateError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Identity, CertificateError> {
        let failed = failed("sign a certificate");
        set_validity(&mut params, &self.clock, VALIDITY);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        let authority_key = KeyPair::from_pem(&self.identity.key).map_err(&failed)?;
        let issuer =
            Issuer::from_ca_cert_pem(&self.identity.certificate, authority_key).map_err(&failed)?;
        let key = KeyPair::generate().map_err(&failed)?;
        let certificate = params.signed_by(&key, &issuer).map_err(&failed)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

impl Identity {
    /// Whether the certificate is still valid for a good while.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        const REMAINING: SignedDuration = SignedDuration::from_hours(24 * 30);
        remaining(&self.certificate, now) > REMAINING
    }

    /// The names and addresses that the certificate is for.
    pub fn names(&self) -> BTreeSet<String> {
        let Ok((_, pem)) = parse_x509_pem(self.certificate.as_bytes()) else {
            return BTreeSet::new();
        };
        let Ok(certificate) = pem.parse_x509() else { return BTreeSet::new() };
        let Ok(Some(names)) = certificate.subject_alternative_name() else {
            return BTreeSet::new();
        };
        let text = |name: &GeneralName<'_>| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
            _ => None,
        };
        names.value.general_names.iter().filter_map(text).collect()
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// The certificates of a text (PEM), each with its markers.
pub(crate) fn split(text: &str) -> impl Iterator<Item = &str> {
    const END: &str = "-----END CERTIFICATE-----\n";
    text.split_inclusive(END).filter(|part| part.ends_with(END))
}

/// How long a certificate (PEM) is valid from now on; nothing for what is none.
pub(crate) fn remaining(certificate: &str, now: Timestamp) -> SignedDuration {
    let Ok((_, pem)) = parse_x509_pem(certificate.as_bytes()) else { return SignedDuration::ZERO };
    pem.parse_x509().map_or(SignedDuration::ZERO, |certificate| {
        SignedDuration::from_secs(certificate.validity().not_after.timestamp() - now.as_second())
    })
}

fn set_validity(params: &mut CertificateParams, clock: &Clock, length: SignedDuration) {
    let date = |time: Timestamp| {
        let date = jiff::tz::TimeZone::UTC.to_datetime(time);
        rcgen::date_time_ymd(
            i32::from(date.year()),
            u8::try_from(date.month()).unwrap_or(1),
            u8::try_from(date.day()).unwrap_or(1),
        )
    };
    let now = clock.now();
    params.not_before = date(now - SKEW - SignedDuration::from_hours(24));
    params.not_after = date(now + length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_certificates_name_their_holder() {
        let clock = Clock::system();
        let authority = Authority::generate(&clock).unwrap();
        let loaded = Authority::load(authority.identity.clone(), &clock);
        let alice = loaded.client("alice", "dev").unwrap();
        assert!(alice.is_fresh(clock.now()));
        assert!(!alice.is_fresh(clock.now() + SignedDuration::from_hours(24 * 360)));
        let (_, pem) = parse_x509_pem(alice.certificate.as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        let groups: Vec<_> =
            certificate.subject().iter_organization().filter_map(|o| o.as_str().ok()).collect();
        assert_eq!(groups, ["dev"]);
        let addresses = ["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
        let server = loaded.server(&["a.svc"], &addresses).unwrap();
        assert_eq!(server.names(), ["127.0.0.1", "::1", "a.svc"].map(str::to_owned).into());
        assert!(!format!("{server:?}").contains("PRIVATE"));
    }
}
