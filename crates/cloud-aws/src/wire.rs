//! One request and its answer.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign},
    sign::v4,
};
use bytes::Bytes;
use fleetwright_clock::Clock;
use fleetwright_cloud::{
    CloudError, ErrorClass,
    transport::{Transport, TransportError},
};
use http::{Request, header};
use tower::ServiceExt;

use crate::{
    credentials::Keys,
    endpoints::Endpoints,
    errors,
    model::{Operation, Service},
    query,
    xml::{Element, FromXml, XmlError},
};

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// What is needed to make any call.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) transport: Transport,
    pub(crate) endpoints: Endpoints,
    pub(crate) clock: Clock,
}

impl Wire {
    /// Sends a request and reads its answer. Without keys it is not signed.
    pub(crate) async fn exchange<O: Operation>(
        &self,
        region: &str,
        keys: Option<&Keys>,
        request: &O,
    ) -> Result<O::Output, CloudError> {
        let cannot = |why: String| CloudError::configuration(O::ACTION, why);
        let endpoint = self.endpoints.of(O::SERVICE, region);
        let endpoint =
            endpoint.map_err(|_| cannot(format!("{region:?} is not the name of a region")))?;
        let parameters = query::parameters(request).map_err(|error| cannot(error.to_string()))?;
        let mut request = Request::post(endpoint)
            .header(header::CONTENT_TYPE, FORM)
            .body(Bytes::from(query::form(&parameters)))
            .map_err(|error| cannot(error.to_string()))?;
        if let Some(keys) = keys {
            let time = SystemTime::from(self.clock.now());
            signed(&mut request, O::SERVICE, region, keys, time).map_err(cannot)?;
        }
        let answer = self.transport.clone().oneshot(request).await.map_err(|error| {
            let class = match &error {
                TransportError::NotSent(_) => ErrorClass::Transient,
                TransportError::AnswerLost(_) => ErrorClass::AnswerLost,
            };
            CloudError::new(class, O::ACTION, "", error.to_string())
        })?;
        if !answer.status().is_success() {
            return Err(errors::from_answer::<O>(answer.status(), answer.body()));
        }
        // It was done; what it did is not known.
        let unreadable = |error: XmlError| {
            CloudError::new(ErrorClass::AnswerLost, O::ACTION, "", error.to_string())
        };
        let document = Element::parse(answer.body()).map_err(unreadable)?;
        match O::RESULT.and_then(|name| document.child(name)) {
            Some(result) => O::Output::from_xml(result),
            None => O::Output::from_xml(&document),
        }
        .map_err(unreadable)
    }
}

/// Adds the signature (version 4) to a request.
fn signed(
    request: &mut Request<Bytes>,
    service: Service,
    region: &str,
    keys: &Keys,
    time: SystemTime,
) -> Result<(), String> {
    let identity = Credentials::new(
        keys.access_key_id.clone(),
        keys.secret_access_key.clone(),
        keys.session_token.clone(),
        None,
        "fleetwright",
    )
    .into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(service.endpoint)
        .time(time)
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| error.to_string())?
        .into();
    let instructions = {
        let body = SignableBody::Bytes(request.body());
        let headers = [(header::CONTENT_TYPE.as_str(), FORM)];
        let uri = request.uri().to_string();
        let signable = SignableRequest::new("POST", uri, headers.into_iter(), body)
            .map_err(|error| error.to_string())?;
        let output = sign(signable, &parameters).map_err(|error| error.to_string())?;
        output.into_parts().0
    };
    instructions.apply_to_request_http1x(request);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ec2;

    /// The form and the date of the vendor's own example for this service family, signed with the
    /// vendor's example key; the signature was computed with botocore.
    #[test]
    fn a_signature() {
        let keys = Keys {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: Some("token".to_owned()),
            expires: None,
        };
        let mut request = Request::post("https://ec2.us-east-1.amazonaws.com/")
            .header(header::CONTENT_TYPE, FORM)
            .body(Bytes::from_static(b"Action=DescribeInstances&Version=2016-11-15"))
            .unwrap();
        let time: jiff::Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        signed(&mut request, ec2::SERVICE, "us-east-1", &keys, time.into()).unwrap();
        let header = |name: &str| request.headers()[name].to_str().unwrap();
        assert_eq!(header("x-amz-date"), "20261115T120000Z");
        assert_eq!(header("x-amz-security-token"), "token");
        assert_eq!(header("authorization"), EXPECTED);
    }

    const EXPECTED: &str = "AWS4-HMAC-SHA256 \
        Credential=AKIDEXAMPLE/20261115/us-east-1/ec2/aws4_request, \
        SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, \
        Signature=c03465147f6be35a847166f882a228d70f7ae38ff80ea67e94505c4e69b35c2d";
}
