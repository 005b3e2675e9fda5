//! Kubernetes protobuf bodies, decoded to JSON.
