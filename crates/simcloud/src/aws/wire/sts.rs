//! The calls of the Security Token Service.

use super::{Call, Handler, xml::Xml};
use crate::aws::model::{ApiError, Outcome};

/// Every call that is served.
pub(super) const ACTIONS: &[(&str, Handler)] = &[
    ("GetCallerIdentity", caller_identity),
    ("AssumeRole", |call| assume_role(call, false)),
    ("AssumeRoleWithWebIdentity", |call| assume_role(call, true)),
];

fn caller_identity(call: &mut Call<'_>) -> Outcome<Xml> {
    call.ready()?;
    let account = &call.region.settings.account;
    let key = call.caller.as_deref().and_then(|id| call.keys.get(id));
    let mut xml = Xml::default();
    xml.text("Arn", key.map_or_else(|| format!("arn:aws:iam::{account}:root"), |k| k.arn.clone()));
    xml.text("UserId", call.caller.as_deref().unwrap_or(account));
    xml.text("Account", account);
    Ok(xml)
}

fn assume_role(call: &mut Call<'_>, web: bool) -> Outcome<Xml> {
    let scope = call.scope();
    let role = scope.required("RoleArn")?;
    let session = scope.required("RoleSessionName")?;
    let token = if web { scope.required("WebIdentityToken")? } else { String::new() };
    if !web {
        scope.text("ExternalId");
    }
    let duration = scope.number("DurationSeconds")?.unwrap_or(3600);
    call.ready()?;
    if !(900..=43_200).contains(&duration) {
        return Err(ApiError::client(
            "ValidationError",
            format!("The requested DurationSeconds {duration} is out of range"),
        ));
    }
    let expected = format!("arn:aws:iam::{}:role/", call.region.settings.account);
    let Some(name) = role.strip_prefix(&expected) else {
        return Err(ApiError::client(
            "AccessDenied",
            "Not authorized to perform sts:AssumeRoleWithWebIdentity",
        )
        .with_status(403));
    };
    // A token is three parts of base64, whatever they say: nobody here can check its signature.
    if web && token.split('.').count() != 3 {
        return Err(ApiError::client(
            "InvalidIdentityToken",
            "The ID Token provided is not a valid JWT.",
        ));
    }
    let arn =
        format!("arn:aws:sts::{}:assumed-role/{name}/{session}", call.region.settings.account);
    let expires = call.now + jiff::SignedDuration::from_secs(duration);
    let issued = call.keys.issue(&call.region.random, &arn, expires);
    let mut xml = Xml::default();
    if web {
        xml.text("SubjectFromWebIdentityToken", "system:serviceaccount");
        xml.text("Audience", "sts.amazonaws.com");
        xml.text("Provider", "simulated");
    }
    xml.node("AssumedRoleUser", |xml| {
        xml.text("Arn", &arn);
        xml.text("AssumedRoleId", format_args!("AROASIMULATED:{session}"));
    });
    xml.node("Credentials", |xml| {
        xml.text("AccessKeyId", &issued.0);
        xml.text("SecretAccessKey", &issued.1.secret);
        xml.maybe("SessionToken", issued.1.session_token.as_ref());
        xml.time("Expiration", expires);
    });
    Ok(xml)
}
