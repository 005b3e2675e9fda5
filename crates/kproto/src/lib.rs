//! Kubernetes protobuf bodies, decoded to JSON, and the Go types of the built-in kinds.
//!
//! kubectl sends some bodies (`create namespace`, `auth can-i`, deletions) as protobuf: four
//! magic bytes and an envelope that names the kind. [`decode`] turns such a body into the JSON
//! object that the same client would have sent, so that nothing behind it knows of protobuf.
//!
//! What a message looks like comes from [`types`], a table generated from the Go sources by
//! `cargo xtask generate`. It holds more than protobuf needs (which fields are left out when
//! empty, patch strategies, Go names) because the typed decoding of JSON bodies reads it too.

mod decode;
mod envelope;
pub mod gotime;
mod special;
pub mod types;
mod wire;

pub use decode::go_float;
pub use envelope::{CONTENT_TYPE, DecodeError, Decoded, decode, is_protobuf};
pub use wire::WireError;

/// Deepest nesting of an object that is accepted, counted in JSON values.
///
/// Objects are read back with `serde_json`, which refuses 128 levels; anything deeper must be
/// refused on the way in. Kubernetes kinds stay far below it.
pub const MAX_DEPTH: usize = 120;
