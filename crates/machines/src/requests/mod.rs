//! Requests to the Kubernetes API that several controllers make.

pub(crate) mod bulk;
pub(crate) mod pace;

use std::time::Duration;

use fleetwright_api::machine::Machine;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
};
use tokio::time::sleep;

/// How often a request is repeated whose answer did not come.
pub(crate) const LOST_ANSWER_TRIES: u32 = 3;
/// How long to wait before that.
pub(crate) const LOST_ANSWER_PAUSE: Duration = Duration::from_millis(200);

/// Whether no answer came: the request may have had its effect.
pub(crate) fn is_lost(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code >= 500 && status.code != 503,
        _ => true,
    }
}

/// Deletes a Machine: this one, not another of the same name.
pub(crate) async fn delete_machine(
    api: &Api<Machine>,
    machine: &Machine,
) -> Result<(), kube::Error> {
    let preconditions = Preconditions { uid: machine.uid(), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    let mut lost = 0;
    loop {
        match api.delete(&machine.name_any(), &params).await {
            Ok(_) => return Ok(()),
            // Gone, or another one by now: what was wanted.
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {
                return Ok(());
            }
            Err(error) if is_lost(&error) && lost < LOST_ANSWER_TRIES => {
                lost += 1;
                sleep(LOST_ANSWER_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}
