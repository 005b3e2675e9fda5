//! Clients in the same process: no socket, and the user is known.

use std::sync::Arc;

use fleetwright_apiserver::{Server, service::KnownUser, user::UserInfo};
use http::Request;
use kube::{Client, client::Body};
use tower::ServiceExt;

/// A client of the server as a user.
pub fn in_process(server: &Server, user: UserInfo, namespace: &str) -> Client {
    let user = Arc::new(user);
    let service = server.clone().map_request(move |mut request: Request<Body>| {
        request.extensions_mut().insert(KnownUser(Arc::clone(&user)));
        request
    });
    Client::new(service, namespace)
}
