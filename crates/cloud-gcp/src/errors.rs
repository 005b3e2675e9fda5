//! What error codes mean.
//!
//! A lack of capacity is not in the answer of a request but in the operation that it starts, so
//! codes of both are known here, and a code wins over the HTTP status.

use fleetwright_cloud::ErrorClass;

/// What an error means, by its code (`ZONE_RESOURCE_POOL_EXHAUSTED`, `rateLimitExceeded`) and the
/// HTTP status it came with; operations have none.
pub fn classify(code: &str, status: Option<u16>) -> ErrorClass {
    match code {
        "ZONE_RESOURCE_POOL_EXHAUSTED" | "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS" => {
            ErrorClass::Capacity
        }
        "QUOTA_EXCEEDED" | "quotaExceeded" => ErrorClass::Quota,
        "RATE_LIMIT_EXCEEDED" | "rateLimitExceeded" | "userRateLimitExceeded" => {
            ErrorClass::Throttled
        }
        "RESOURCE_ALREADY_EXISTS" | "alreadyExists" => ErrorClass::AlreadyExists,
        "RESOURCE_NOT_FOUND" | "notFound" => ErrorClass::NotFound,
        "resourceInUseByAnotherResource" | "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE" => {
            ErrorClass::InUse
        }
        _ => match status {
            Some(409) => ErrorClass::AlreadyExists,
            Some(status) => ErrorClass::by_status(status),
            // An operation that failed for a reason we do not know may work next time.
            None => ErrorClass::Transient,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_win_over_the_status() {
        for (code, status, wanted) in [
            ("ZONE_RESOURCE_POOL_EXHAUSTED", None, ErrorClass::Capacity),
            ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", Some(503), ErrorClass::Capacity),
            ("QUOTA_EXCEEDED", None, ErrorClass::Quota),
            ("rateLimitExceeded", Some(403), ErrorClass::Throttled),
            ("forbidden", Some(403), ErrorClass::Credentials),
            ("invalid", Some(400), ErrorClass::Configuration),
            ("", Some(404), ErrorClass::NotFound),
            ("", Some(500), ErrorClass::Transient),
            ("INTERNAL_ERROR", None, ErrorClass::Transient),
        ] {
            assert_eq!(classify(code, status), wanted, "{code} {status:?}");
        }
    }
}
