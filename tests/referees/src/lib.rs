//! Starts the real Kubernetes binaries and compares the embedded API with them.
