//! Reading request bodies: JSON, YAML and protobuf.

mod media;
mod text;

pub use media::BodyFormat;
pub use text::{Parsed, parse_json, parse_yaml, yaml_warnings};
