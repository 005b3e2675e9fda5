//! An embedded Kubernetes API.
//!
//! One generic handler over a registry of resources: what a kind adds (defaults, validation,
//! table columns) is a [`kinds::Kind`], never a handler of its own. The server is a tower
//! service, so that controllers can talk to it in the same process on virtual time, and it is
//! served over TLS by `fleetwright up`. The referee is the real kube-apiserver: where this
//! documentation is silent, the server does what that one does.

pub mod access;
pub mod admission;
pub mod auth;
mod bootstrap;
mod builtin_resources;
pub mod codec;
pub mod controllers;
pub mod convert;
pub mod crd;
pub mod discovery;
pub mod embedded;
pub mod gvk;
mod handlers;
pub mod internal;
pub mod kinds;
pub mod managed;
mod nonresource;
pub mod object;
pub mod objects;
pub mod openapi;
pub mod options;
pub mod patch;
pub mod query;
pub mod registry;
pub mod request;
pub mod reviews;
pub mod selector;
pub mod server;
pub mod service;
pub mod status;
pub mod storage;
pub mod table;
pub mod tls;
pub mod user;
mod warnings;

pub use server::{Limits, Parts, Server};
