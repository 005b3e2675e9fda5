//! Signatures: who calls. The whole of Signature Version 4 is checked, as AWS checks it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use bytes::Bytes;
use fleetwright_clock::Random;
use http::Request;
use jiff::{SignedDuration, Timestamp, civil, tz::TimeZone};
use ring::hmac;
use sha2::{Digest, Sha256};

use super::{Api, form};
use crate::aws::model::{ApiError, Outcome};

/// An access key.
#[derive(Clone, Debug)]
pub struct Key {
    /// The secret half.
    pub secret: String,
    /// Of temporary credentials.
    pub session_token: Option<String>,
    /// When temporary credentials end.
    pub expires: Option<Timestamp>,
    /// Whose it is.
    pub arn: String,
    /// Actions that its owner may not do, such as `ec2:RunInstances`.
    pub denied: BTreeSet<String>,
}

/// Every access key, by its identifier.
#[derive(Clone, Debug, Default)]
pub struct Keys(BTreeMap<String, Key>);

/// How far a caller's clock may be off.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

impl Keys {
    /// Adds a key.
    pub fn add(&mut self, id: String, key: Key) {
        self.0.insert(id, key);
    }

    /// Takes a key away: calls with it are refused from now on.
    pub fn remove(&mut self, id: &str) -> bool {
        self.0.remove(id).is_some()
    }

    /// A key.
    pub fn get(&self, id: &str) -> Option<&Key> {
        self.0.get(id)
    }

    /// A key, to change it.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut Key> {
        self.0.get_mut(id)
    }

    /// Denies these actions, such as `ec2:RunInstances`, to every key, and no others.
    pub fn deny(&mut self, actions: &BTreeSet<String>) {
        for key in self.0.values_mut() {
            key.denied.clone_from(actions);
        }
    }

    /// Temporary credentials.
    pub(super) fn issue(
        &mut self,
        random: &Random,
        arn: &str,
        expires: Timestamp,
    ) -> (String, Key) {
        let text = |length| random.name_suffix(length);
        let key = Key {
            secret: text(40),
            session_token: Some(text(96)),
            expires: Some(expires),
            arn: arn.to_owned(),
            denied: BTreeSet::new(),
        };
        let id = format!("ASIA{}", text(16).to_uppercase());
        self.add(id.clone(), key.clone());
        (id, key)
    }

    /// Who signed the request, if the signature is good.
    pub(crate) fn check(
        &self,
        api: Api,
        action: &str,
        request: &Request<Bytes>,
        region: &str,
        now: Timestamp,
    ) -> Outcome<Option<String>> {
        if api == Api::Sts && action == "AssumeRoleWithWebIdentity" {
            return Ok(None);
        }
        let signed = Signed::read(request).ok_or_else(|| unsigned(api))?;
        let key = self.0.get(&signed.key).ok_or_else(|| bad_key(api))?;
        let token = header(request, "x-amz-security-token");
        if key.session_token.as_deref() != token {
            return Err(bad_key(api));
        }
        if now.duration_since(signed.at).abs() > SKEW {
            return Err(expired(api));
        }
        if key.expires.is_some_and(|expires| expires <= now) {
            return Err(expired(api));
        }
        let scope_is_right = signed.service == api.name() && signed.region == region;
        if !scope_is_right || signed.expected(request, &key.secret) != signed.signature {
            return Err(mismatch(api));
        }
        let denied = format!("{}:{action}", api.name());
        if key.denied.contains(&denied) {
            return Err(unauthorized(api, &key.arn, &denied));
        }
        Ok(Some(signed.key))
    }
}

/// What the Authorization header says.
struct Signed {
    key: String,
    date: String,
    region: String,
    service: String,
    headers: Vec<String>,
    signature: String,
    stamp: String,
    at: Timestamp,
}

impl Signed {
    fn read(request: &Request<Bytes>) -> Option<Self> {
        let rest = header(request, "authorization")?.strip_prefix("AWS4-HMAC-SHA256")?;
        let fields: BTreeMap<&str, &str> =
            rest.split(',').filter_map(|field| field.trim().split_once('=')).collect();
        let mut credential = fields.get("Credential")?.split('/').map(str::to_owned);
        let (key, date) = (credential.next()?, credential.next()?);
        let (region, service) = (credential.next()?, credential.next()?);
        if credential.next().as_deref() != Some("aws4_request") {
            return None;
        }
        let headers: Vec<String> =
            fields.get("SignedHeaders")?.split(';').map(str::to_owned).collect();
        if !headers.iter().any(|name| name == "host") {
            return None;
        }
        let stamp = header(request, "x-amz-date")?.to_owned();
        let at = civil::DateTime::strptime("%Y%m%dT%H%M%SZ", &stamp).ok()?;
        let at = at.to_zoned(TimeZone::UTC).ok()?.timestamp();
        if !stamp.starts_with(&date) {
            return None;
        }
        let signature = (*fields.get("Signature")?).to_owned();
        Some(Self { key, date, region, service, headers, signature, stamp, at })
    }

    /// The signature that the secret gives.
    fn expected(&self, request: &Request<Bytes>, secret: &str) -> String {
        let mut canonical = String::new();
        let _ = write!(canonical, "{}\n{}\n", request.method(), path(request.uri().path()));
        let _ = writeln!(canonical, "{}", query(request.uri().query().unwrap_or_default()));
        for name in &self.headers {
            let value = match header(request, name) {
                Some(value) => value.to_owned(),
                // A request that never met a socket has its host in the address only.
                None if name == "host" => {
                    request.uri().authority().map(ToString::to_string).unwrap_or_default()
                }
                None => String::new(),
            };
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(canonical, "{name}:{value}");
        }
        let _ = write!(canonical, "\n{}\n", self.headers.join(";"));
        match header(request, "x-amz-content-sha256") {
            Some(hash) => canonical.push_str(hash),
            None => canonical.push_str(&hex(&Sha256::digest(request.body()))),
        }
        let scope = format!("{}/{}/{}/aws4_request", self.date, self.region, self.service);
        let text = format!(
            "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
            self.stamp,
            hex(&Sha256::digest(canonical.as_bytes()))
        );
        let mut key = format!("AWS4{secret}").into_bytes();
        for part in [&self.date, &self.region, &self.service, "aws4_request"] {
            key = hmac_sha256(&key, part.as_bytes());
        }
        hex(&hmac_sha256(&key, text.as_bytes()))
    }
}

fn header<'a>(request: &'a Request<Bytes>, name: &str) -> Option<&'a str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

fn path(path: &str) -> String {
    let path = if path.is_empty() { "/" } else { path };
    path.split('/').map(form::encode).collect::<Vec<_>>().join("/")
}

fn query(query: &str) -> String {
    let mut pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.sort_unstable();
    let whole =
        |pair: &&str| if pair.contains('=') { (*pair).to_owned() } else { format!("{pair}=") };
    pairs.iter().map(whole).collect::<Vec<_>>().join("&")
}

fn hmac_sha256(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unsigned(api: Api) -> ApiError {
    match api {
        Api::Ec2 => ApiError::client(
            "AuthFailure",
            "AWS was not able to validate the provided access credentials",
        )
        .with_status(401),
        _ => ApiError::client(
            "MissingAuthenticationToken",
            "Request is missing Authentication Token",
        )
        .with_status(403),
    }
}

fn bad_key(api: Api) -> ApiError {
    match api {
        Api::Ec2 => unsigned(api),
        _ => ApiError::client(
            "InvalidClientTokenId",
            "The security token included in the request is invalid.",
        )
        .with_status(403),
    }
}

fn expired(api: Api) -> ApiError {
    match api {
        Api::Ec2 => ApiError::client("RequestExpired", "Request has expired."),
        _ => ApiError::client(
            "ExpiredToken",
            "The security token included in the request is expired",
        )
        .with_status(403),
    }
}

fn mismatch(api: Api) -> ApiError {
    match api {
        Api::Ec2 => unsigned(api),
        _ => ApiError::client(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. Check \
             your AWS Secret Access Key and signing method.",
        )
        .with_status(403),
    }
}

fn unauthorized(api: Api, arn: &str, action: &str) -> ApiError {
    match api {
        Api::Ec2 => ApiError::client(
            "UnauthorizedOperation",
            format!(
                "You are not authorized to perform this operation. User: {arn} is not authorized \
                 to perform: {action} because no identity-based policy allows the {action} action"
            ),
        ),
        _ => ApiError::client(
            "AccessDenied",
            format!("User: {arn} is not authorized to perform: {action}"),
        ),
    }
    .with_status(403)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked example of the documentation of Signature Version 4.
    #[test]
    fn the_documented_example() {
        let request = Request::builder()
            .method("GET")
            .uri("https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08")
            .header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
            .header("x-amz-date", "20150830T123600Z")
            .header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
                 SignedHeaders=content-type;host;x-amz-date, Signature=\
                 5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
            )
            .body(Bytes::new())
            .unwrap();
        let signed = Signed::read(&request).unwrap();
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        assert_eq!(signed.expected(&request, secret), signed.signature);
        assert_ne!(signed.expected(&request, "other"), signed.signature);
    }
}
