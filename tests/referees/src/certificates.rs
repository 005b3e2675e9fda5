//! Certificates for a cluster on loopback, made afresh for each run.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// The name of the administrator: the same as on the embedded server, since webhooks and
/// reviews show it.
const ADMIN: &str = "fleetwright:admin";

/// The files that a cluster needs, and the texts that its clients need.
#[derive(Debug)]
pub struct Certificates {
    /// Certificate of the authority, in PEM.
    pub authority: String,
    /// The administrator's client certificate, in PEM.
    pub admin_certificate: String,
    /// The administrator's key, in PEM.
    pub admin_key: String,
    /// File with the certificate of the authority.
    pub authority_file: PathBuf,
    /// File with the server's certificate.
    pub server_certificate_file: PathBuf,
    /// File with the server's key.
    pub server_key_file: PathBuf,
    /// File with the key that signs service account tokens.
    pub signing_key_file: PathBuf,
    /// File with the public half of it, which checks them.
    pub checking_key_file: PathBuf,
}

impl Certificates {
    /// Makes the authority and everything it signs, and writes the files into a folder.
    pub fn make(folder: &Path) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "referee authority");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
        let authority_key = KeyPair::generate()?;
        let authority = params.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(params, authority_key);

        let mut server = leaf("kube-apiserver", None, ExtendedKeyUsagePurpose::ServerAuth)?;
        for name in ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"] {
            server.subject_alt_names.push(SanType::DnsName(name.try_into()?));
        }
        server.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let (server_certificate, server_key) = sign(&server, &issuer)?;

        let admin = leaf(ADMIN, Some("system:masters"), ExtendedKeyUsagePurpose::ClientAuth)?;
        let (admin_certificate, admin_key) = sign(&admin, &issuer)?;

        let account_key = KeyPair::generate()?;

        let write = |name: &str, text: &str| -> Result<PathBuf> {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(path)
        };
        Ok(Self {
            authority_file: write("ca.crt", &authority)?,
            server_certificate_file: write("server.crt", &server_certificate)?,
            server_key_file: write("server.key", &server_key)?,
            signing_key_file: write("sa.key", &account_key.serialize_pem())?,
            checking_key_file: write("sa.pub", &account_key.public_key_pem())?,
            authority,
            admin_certificate,
            admin_key,
        })
    }
}

fn leaf(
    name: &str,
    organization: Option<&str>,
    usage: ExtendedKeyUsagePurpose,
) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn sign(params: &CertificateParams, issuer: &Issuer<'_, KeyPair>) -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}
