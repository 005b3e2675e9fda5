// Written by `cargo xtask generate` from the public service model; do not edit.
// Selection: a442c0b0bf7ea49fac694ffcb643e50977569cbd264de1b02dbac52883de9021

//! AWS Security Token Service.

use super::{Kind, Operation, Service, operation, request, response};

/// The service.
pub const SERVICE: Service = Service {
    name: "sts",
    endpoint: "sts",
    version: "2011-06-15",
};

/// The operations that we call.
pub const OPERATIONS: &[&str] = &[
    "AssumeRole",
    "AssumeRoleWithWebIdentity",
];

operation! { AssumeRole, Kind::Repeatable, Some("AssumeRoleResult"), requests::AssumeRoleRequest => responses::AssumeRoleResponse }

operation! { AssumeRoleWithWebIdentity, Kind::Repeatable, Some("AssumeRoleWithWebIdentityResult"), requests::AssumeRoleWithWebIdentityRequest => responses::AssumeRoleWithWebIdentityResponse }

/// What is sent.
pub mod requests {
    use super::request;

    request! {
        AssumeRoleRequest {
            external_id: Option<String> = "ExternalId",
            role_arn: Option<String> = "RoleArn",
            role_session_name: Option<String> = "RoleSessionName",
        }
    }

    request! {
        AssumeRoleWithWebIdentityRequest {
            role_arn: Option<String> = "RoleArn",
            role_session_name: Option<String> = "RoleSessionName",
            web_identity_token: Option<String> = "WebIdentityToken",
        }
    }
}

/// What is answered.
pub mod responses {
    use super::response;

    response! {
        AssumeRoleResponse {
            credentials: Option<Credentials> = "Credentials",
        }
    }

    response! {
        AssumeRoleWithWebIdentityResponse {
            credentials: Option<Credentials> = "Credentials",
        }
    }

    response! {
        Credentials {
            access_key_id: Option<String> = "AccessKeyId",
            expiration: Option<String> = "Expiration",
            secret_access_key: Option<String> = "SecretAccessKey",
            session_token: Option<String> = "SessionToken",
        }
    }
}
