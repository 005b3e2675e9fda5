//! What error codes mean. A code wins over the HTTP status: a lack of capacity comes with 409.

use fleetwright_cloud::ErrorClass;

/// What an error means, by its code (`AllocationFailed`) and the HTTP status it came with.
pub fn classify(code: &str, status: u16) -> ErrorClass {
    match code {
        "AllocationFailed"
        | "ZonalAllocationFailed"
        | "OverconstrainedAllocationRequest"
        | "OverconstrainedZonalAllocationRequest"
        | "SkuNotAvailable" => ErrorClass::Capacity,
        "QuotaExceeded" | "OperationNotAllowed" => ErrorClass::Quota,
        "TooManyRequests" => ErrorClass::Throttled,
        "ResourceNotFound" | "ResourceGroupNotFound" => ErrorClass::NotFound,
        _ => ErrorClass::by_status(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_win_over_the_status() {
        for (code, status, wanted) in [
            ("SkuNotAvailable", 409, ErrorClass::Capacity),
            ("OverconstrainedAllocationRequest", 409, ErrorClass::Capacity),
            ("OperationNotAllowed", 409, ErrorClass::Quota),
            ("AuthorizationFailed", 403, ErrorClass::Credentials),
            ("InvalidParameter", 400, ErrorClass::Configuration),
            ("", 401, ErrorClass::Credentials),
            ("", 404, ErrorClass::NotFound),
            ("", 500, ErrorClass::Transient),
        ] {
            assert_eq!(classify(code, status), wanted, "{code} {status}");
        }
    }
}
