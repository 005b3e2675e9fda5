//! Calling one webhook.

use bytes::Bytes;
use fleetwright_kschema::gotext::quote;
use http::{
    Method, Request,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue, USER_AGENT},
};
use serde_json::Value;

use super::{
    Admission, Attributes,
    configuration::Webhook,
    matching::Invocation,
    review::{self, Answer, ReviewVersion},
    transport::Target,
};
use crate::status::ApiError;

/// Why a webhook did not let a request pass.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Failure {
    /// It could not be asked, or its answer makes no sense. Whether that matters is a matter of
    /// its failure policy.
    Calling(String),
    /// The request is refused.
    Refused(ApiError),
}

impl Failure {
    /// The error for the client, unless the webhook's policy is to go on.
    pub(super) fn into_error(self, webhook: &Webhook) -> Result<(), ApiError> {
        match self {
            Self::Refused(error) => Err(error),
            Self::Calling(why) => {
                let error = format!("failed calling webhook {}: {why}", quote(&webhook.name));
                if webhook.ignores_failure {
                    tracing::warn!(webhook = webhook.name, error, "webhook failed, going on");
                    Ok(())
                } else {
                    Err(ApiError::internal(error))
                }
            }
        }
    }
}

/// What a webhook is asked about: objects in the version of the invocation.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) attributes: &'a Attributes<'a>,
    pub(super) invocation: &'a Invocation,
    pub(super) object: Option<&'a Value>,
    pub(super) old_object: Option<&'a Value>,
    pub(super) mutating: bool,
}

impl Admission {
    /// Asks a webhook.
    pub(super) async fn ask(
        &self,
        webhook: &Webhook,
        question: Question<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Answer, Failure> {
        let Question { attributes, invocation, object, old_object, mutating } = question;
        if attributes.dry_run && webhook.has_side_effects {
            return Err(Failure::Refused(ApiError::bad_request(format!(
                "admission webhook {} does not support dry run",
                quote(&webhook.name)
            ))));
        }
        let version = ReviewVersion::choose(&webhook.review_versions).ok_or_else(|| {
            Failure::Calling("could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)".to_owned())
        })?;
        let target = webhook
            .target
            .as_ref()
            .map_err(|why| Failure::Calling(format!("could not get REST client: {why}")))?;
        let uid = self.random.uuid().to_string();
        let request = review::request(attributes, invocation, object);
        let body = review::review(version, &uid, request, object, old_object);
        let url = format!("{}?timeout={}s", target.url(), webhook.timeout.as_secs());
        let failed = |why: &str| {
            Failure::Calling(format!("failed to call webhook: Post {}: {why}", quote(&url)))
        };
        let request = post(&url, &body).map_err(|why| failed(&why))?;
        let response = tokio::time::timeout(webhook.timeout, self.send(target, request))
            .await
            .map_err(|_| failed("context deadline exceeded"))?
            .map_err(|why| failed(&why))?;
        let answer = review::read(version, &uid, mutating, &response).map_err(Failure::Calling)?;
        warnings.extend(answer.warnings.iter().cloned());
        if answer.allowed {
            Ok(answer)
        } else {
            Err(Failure::Refused(review::denial(&webhook.name, answer.status.as_ref())))
        }
    }

    async fn send(
        &self,
        target: &Target,
        request: Request<Bytes>,
    ) -> Result<http::Response<Bytes>, String> {
        self.transport.call(target, request).await.map_err(|error| error.to_string())
    }
}

fn post(url: &str, body: &Value) -> Result<Request<Bytes>, String> {
    Request::builder()
        .method(Method::POST)
        .uri(url)
        .header(USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"))
        .header(ACCEPT, HeaderValue::from_static("application/json, */*"))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(Bytes::from(body.to_string()))
        .map_err(|error| error.to_string())
}
