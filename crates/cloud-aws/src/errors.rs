//! What the services' error codes mean.
//!
//! Decided by the code: InsufficientInstanceCapacity comes with HTTP 500 and VcpuLimitExceeded with
//! 400, so the status says nothing. A code that is not known is never terminal unless it says
//! itself that the request is wrong.

use bytes::Bytes;
use fleetwright_cloud::{CloudError, ErrorClass};
use http::StatusCode;

use crate::{
    model::{Operation, Service},
    xml::Element,
};

/// In the message when a spread placement group is full in a zone. The codes are those of a lack
/// of capacity, which it is not.
pub const SPREAD_LIMIT_TEXT: &str = "limit of instances in this spread placement group";

/// In the message when a profile does not exist, or not yet: new ones show late, so it is asked for
/// again, and the message tells what is missing.
const NO_PROFILE_TEXT: &str = "Invalid IAM Instance Profile";

/// What a code means.
pub fn classify(code: &str, message: &str) -> ErrorClass {
    let code = code.strip_prefix("Client.").or(code.strip_prefix("Server.")).unwrap_or(code);
    match by_code(code) {
        ErrorClass::Capacity if message.contains(SPREAD_LIMIT_TEXT) => ErrorClass::SpreadLimit,
        ErrorClass::Configuration if message.contains(NO_PROFILE_TEXT) => ErrorClass::Transient,
        class => class,
    }
}

fn by_code(code: &str) -> ErrorClass {
    match code {
        "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "EC2ThrottledException"
        | "TooManyRequestsException"
        | "BandwidthLimitExceeded"
        | "SlowDown" => ErrorClass::Throttled,

        "UnfulfillableCapacity"
        | "SpotMaxPriceTooLow"
        | "ReservationCapacityExceeded"
        | "MaxFleetCountExceeded" => ErrorClass::Capacity,

        "MaxSpotInstanceCountExceeded"
        | "TooManyRegistrationsForTargetId"
        | "TooManyTargets"
        | "TooManyUniqueTargetGroupsPerLoadBalancer" => ErrorClass::Quota,

        "UnauthorizedOperation"
        | "AuthFailure"
        | "AccessDenied"
        | "AccessDeniedException"
        | "Blocked"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "IDPRejectedClaim"
        | "IncompleteSignature"
        | "InvalidAccessKeyId"
        | "InvalidClientTokenId"
        | "InvalidIdentityToken"
        | "MissingAuthenticationToken"
        | "NotAuthorized"
        | "OptInRequired"
        | "PendingVerification"
        | "SignatureDoesNotMatch"
        | "TokenRefreshRequired"
        | "UnrecognizedClientException" => ErrorClass::Credentials,

        "InvalidPlacementGroup.Duplicate" => ErrorClass::AlreadyExists,
        "InvalidPlacementGroup.InUse"
        | "VolumeInUse"
        | "DependencyViolation"
        // Somebody protects it from its end.
        | "OperationNotPermitted" => ErrorClass::InUse,
        "ResourceCountExceeded" | "RequestResourceCountExceeded" => ErrorClass::BatchTooBig,
        "IdempotentParameterMismatch" => ErrorClass::TokenMismatch,
        "IdempotentInstanceTerminated" => ErrorClass::TokenSpent,

        // What we made or follow ourselves. A thing that the user names and that does not exist
        // (an image, a subnet, a key) is a mistake in the request instead.
        "InvalidInstanceID.NotFound"
        | "InvalidInstanceID.Malformed"
        | "InvalidPlacementGroup.Unknown"
        | "InvalidVolume.NotFound"
        | "InvalidHostID.NotFound"
        | "InvalidDhcpOptionID.NotFound"
        | "InvalidDhcpOptionsID.NotFound"
        | "InvalidVpcID.NotFound"
        | "InvalidTarget"
        | "InvalidInstance"
        | "LoadBalancerNotFound"
        | "AccessPointNotFound"
        | "TargetGroupNotFound" => ErrorClass::NotFound,

        "TagLimitExceeded"
        | "SecurityGroupsPerInstanceLimitExceeded"
        | "TagPolicyViolation"
        | "UnknownParameter"
        | "ValidationError" => ErrorClass::Configuration,

        _ if code.starts_with("Insufficient") => ErrorClass::Capacity,
        _ if code.ends_with("LimitExceeded") => ErrorClass::Quota,
        _ if ["Invalid", "Malformed", "Missing", "Unsupported"]
            .iter()
            .any(|start| code.starts_with(start)) =>
        {
            ErrorClass::Configuration
        }
        _ => ErrorClass::Transient,
    }
}

/// Whether other keys may help. A permission that is missing is missing with new keys as well.
pub(crate) fn keys_are_bad(code: &str) -> bool {
    matches!(
        code,
        "AuthFailure"
            | "ExpiredToken"
            | "ExpiredTokenException"
            | "InvalidAccessKeyId"
            | "InvalidClientTokenId"
            | "RequestExpired"
            | "SignatureDoesNotMatch"
            | "TokenRefreshRequired"
            | "UnrecognizedClientException"
    )
}

/// The error that an answer tells of.
pub(crate) fn from_answer<O: Operation>(status: StatusCode, body: &Bytes) -> CloudError {
    let document = Element::parse(body).ok();
    let error = document.as_ref().and_then(|document| {
        // EC2 lists its errors, the other services tell one.
        document
            .child("Errors")
            .and_then(|errors| errors.child("Error"))
            .or(document.child("Error"))
    });
    let Some((error, code)) = error.and_then(|error| Some((error, error.text_of("Code")?))) else {
        let class = match status {
            StatusCode::TOO_MANY_REQUESTS => ErrorClass::Throttled,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ErrorClass::Credentials,
            _ => ErrorClass::Transient,
        };
        let message = format!("HTTP {status} without an error that can be read");
        return CloudError::new(class, O::ACTION, "", message);
    };
    let message = without_blob(error.text_of("Message").unwrap_or_default());
    let class = classify(code, message);
    let mut told = CloudError::new(class, O::ACTION, code, message);
    let request_id = document
        .as_ref()
        .and_then(|document| document.text_of("RequestID").or(document.text_of("RequestId")));
    told.request_id = request_id.map(Into::into);
    told.missing_permission = missing_permission(code, message, O::SERVICE, O::ACTION);
    told
}

/// The permission that a refusal is about: the one that it names, or that of the operation.
pub fn missing_permission(
    code: &str,
    message: &str,
    service: Service,
    action: &str,
) -> Option<Box<str>> {
    if !matches!(code, "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException") {
        return None;
    }
    let named = message.split("not authorized to perform: ").nth(1);
    let named = named.and_then(|rest| rest.split_whitespace().next());
    let named = named.filter(|permission| permission.contains(':'));
    Some(named.map_or_else(|| format!("{}:{action}", service.endpoint).into(), Into::into))
}

/// A refusal carries a long encoded text that only its account's administrator can decode.
fn without_blob(message: &str) -> &str {
    message.split("Encoded authorization failure message").next().unwrap_or(message).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ec2::requests::RunInstancesRequest;

    fn answer(status: u16, body: &str) -> CloudError {
        let body = Bytes::from(body.to_owned());
        from_answer::<RunInstancesRequest>(StatusCode::from_u16(status).unwrap(), &body)
    }

    #[test]
    fn codes() {
        for (code, class) in [
            ("Server.InsufficientInstanceCapacity", ErrorClass::Capacity),
            ("InsufficientFreeAddressesInSubnet", ErrorClass::Capacity),
            ("PlacementGroupLimitExceeded", ErrorClass::Quota),
            ("RequestLimitExceeded", ErrorClass::Throttled),
            ("InvalidGroup.NotFound", ErrorClass::Configuration),
            ("InvalidPlacementGroup.Unknown", ErrorClass::NotFound),
            ("MissingParameter", ErrorClass::Configuration),
            ("SomethingNew", ErrorClass::Transient),
            ("", ErrorClass::Transient),
        ] {
            assert_eq!(classify(code, "text"), class, "{code}");
        }
    }

    #[test]
    fn texts_that_change_the_meaning() {
        let spread = "You've reached the limit of instances in this spread placement group.";
        assert_eq!(classify("InsufficientInstanceCapacity", spread), ErrorClass::SpreadLimit);
        assert_eq!(classify("InvalidParameterValue", spread), ErrorClass::Configuration);
        let profile = "Value (worker) for parameter iamInstanceProfile.name is invalid. \
                       Invalid IAM Instance Profile name";
        assert_eq!(classify("InvalidParameterValue", profile), ErrorClass::Transient);
    }

    #[test]
    fn an_error_of_ec2_and_one_of_the_others() {
        let error = answer(
            500,
            "<Response><Errors><Error><Code>InsufficientInstanceCapacity</Code>\
             <Message>none &amp; nothing</Message></Error></Errors><RequestID>r-1</RequestID>\
             </Response>",
        );
        assert_eq!(error.class, ErrorClass::Capacity);
        assert_eq!(error.to_string(), "InsufficientInstanceCapacity: none & nothing");
        assert_eq!(error.request_id.as_deref(), Some("r-1"));
        let error = answer(
            400,
            "<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>TargetGroupNotFound</Code>\
             </Error><RequestId>r-2</RequestId></ErrorResponse>",
        );
        assert_eq!(error.class, ErrorClass::NotFound);
        assert_eq!(error.request_id.as_deref(), Some("r-2"));
    }

    #[test]
    fn an_answer_that_is_no_error_of_theirs() {
        assert_eq!(answer(500, "<!doctype html><p>oops").class, ErrorClass::Transient);
        assert_eq!(answer(429, "").class, ErrorClass::Throttled);
        assert_eq!(answer(403, "<Response/>").class, ErrorClass::Credentials);
    }

    #[test]
    fn a_refusal_names_the_permission() {
        let refused = |message: &str| {
            answer(
                403,
                &format!(
                    "<Response><Errors><Error><Code>UnauthorizedOperation</Code>\
                     <Message>{message}</Message></Error></Errors></Response>"
                ),
            )
        };
        let error = refused(
            "You are not authorized to perform this operation. Encoded authorization failure \
             message: AAAA",
        );
        assert_eq!(error.missing_permission.as_deref(), Some("ec2:RunInstances"));
        assert_eq!(error.message, "You are not authorized to perform this operation.");
        let error = refused(
            "User: arn:aws:iam::1:user/x is not authorized to perform: iam:PassRole on resource: y",
        );
        assert_eq!(error.missing_permission.as_deref(), Some("iam:PassRole"));
        assert_eq!(answer(403, "").missing_permission, None);
    }
}
