//! Users who present a certificate.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::CREDENTIAL_ID;
use crate::user::UserInfo;

/// The attribute of a subject that carries a user's UID.
const UID_ATTRIBUTE: &str = "1.3.6.1.4.1.57683.2";

/// The user that a verified certificate stands for: the common name is the user's, the
/// organizations are the groups. `None` if it names nobody.
pub fn user(der: &[u8]) -> Result<Option<UserInfo>, String> {
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|error| format!("x509: {error}"))?;
    let subject = certificate.subject();
    let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        attribute.as_str().map(str::to_owned)
    };
    // Of several common names, the last counts.
    let Some(name) = subject.iter_common_name().last().and_then(|cn| text(cn).ok()) else {
        return Ok(None);
    };
    if name.is_empty() {
        return Ok(None);
    }
    let mut uids = Vec::new();
    for attribute in subject.iter_attributes() {
        if attribute.attr_type().to_id_string() == UID_ATTRIBUTE {
            uids.push(text(attribute).map_err(|_| "unable to parse UID into a string".to_owned())?);
        }
    }
    let uid = match uids.as_slice() {
        [] => String::new(),
        [one] if one.is_empty() => return Err("UID cannot be an empty string".to_owned()),
        [one] => one.clone(),
        several => {
            let several = several.join(" ");
            return Err(format!("expected 1 UID, but found multiple: [{several}]"));
        }
    };
    let groups = subject.iter_organization().filter_map(|o| text(o).ok()).collect();
    let credential = format!("X509SHA256={}", hex(&Sha256::digest(der)));
    let extra = [(CREDENTIAL_ID.to_owned(), vec![credential])].into();
    Ok(Some(UserInfo { name, uid, groups, extra }))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn certificate(attributes: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in attributes {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn names_and_groups_come_from_the_subject() {
        let der = certificate(&[
            (DnType::CommonName, "alice"),
            (DnType::OrganizationName, "dev"),
            (DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]), "u-1"),
        ]);
        let user = user(&der).unwrap().unwrap();
        assert_eq!(user.name, "alice");
        assert_eq!(user.uid, "u-1");
        assert_eq!(user.groups, ["dev"]);
        assert!(user.extra[CREDENTIAL_ID][0].starts_with("X509SHA256="));
        assert_eq!(user.extra[CREDENTIAL_ID][0].len(), "X509SHA256=".len() + 64);
    }

    #[test]
    fn a_certificate_without_a_name_is_nobody() {
        assert_eq!(user(&certificate(&[(DnType::OrganizationName, "dev")])), Ok(None));
        assert!(user(b"no certificate").is_err());
    }
}
