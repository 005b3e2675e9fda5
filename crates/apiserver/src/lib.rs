//! An embedded Kubernetes API.
