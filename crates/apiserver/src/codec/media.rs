//! Media types of bodies.

use http::{HeaderMap, header::CONTENT_TYPE};

use crate::status::{ApiError, Result};

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

const WITH_PROTOBUF: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const WITHOUT_PROTOBUF: &[&str] = &["application/json", "application/yaml"];

impl BodyFormat {
    /// The format that the headers name. Custom kinds are not read from protobuf.
    pub fn of(headers: &HeaderMap, protobuf: bool) -> Result<Self> {
        let supported = if protobuf { WITH_PROTOBUF } else { WITHOUT_PROTOBUF };
        let header = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let media = header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match media.as_str() {
            "" | "application/json" => Ok(Self::Json),
            "application/yaml" => Ok(Self::Yaml),
            "application/vnd.kubernetes.protobuf" if protobuf => Ok(Self::Protobuf),
            _ => Err(ApiError::unsupported_media_type(supported)),
        }
    }
}
