//! Dedicated hosts that are allocated for one instance and given back after it.

use fleetwright_api::aws::AWSMachineProviderConfig;
use fleetwright_cloud::{
    CloudError, ErrorClass, LaunchOrder, MACHINE_UID_TAG, tags::without_repetitions,
};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    cloud::{AwsCloud, filter},
    launch::{HostRequest, LaunchRequest, tag_specification},
    model::ec2::requests,
};

/// Whether the instances of a provider spec get hosts of their own.
pub(crate) fn on_own_host(provider_spec: &Value) -> bool {
    AWSMachineProviderConfig::deserialize(provider_spec).unwrap_or_default().has_own_host()
}

impl AwsCloud {
    /// Allocates the host of an order. A Machine that is launched again gets the same host.
    pub(crate) async fn allocate_host(
        &self,
        order: &LaunchOrder,
        host: &HostRequest,
    ) -> Result<String, CloudError> {
        const OPERATION: &str = "AllocateHosts";
        if order.count.max != 1 {
            let why = "an instance on a host of its own is launched alone";
            return Err(CloudError::new(ErrorClass::BatchTooBig, OPERATION, "", why));
        }
        let owned = LaunchRequest::deserialize(&order.launch.request).map(|launch| launch.tags);
        let tags = host.tags.iter().cloned().chain(owned.unwrap_or_default());
        let tags = without_repetitions(tags.chain(order.tags.iter().cloned()));
        // Not the order's token, which changes from attempt to attempt: the host of the last one is
        // still there.
        let owner = tags.iter().find(|tag| tag.key == MACHINE_UID_TAG);
        let owner = owner.map_or(order.token.as_str(), |tag| tag.value.as_str());
        let token = format!("host/{owner}/{}", order.launch.hash);
        let token = format!("{:x}", Sha256::digest(token));
        let request = requests::AllocateHostsRequest {
            // The host is for this instance, and for nobody who asks for any.
            auto_placement: Some("off".to_owned()),
            availability_zone: Some(host.zone.clone()),
            client_token: Some(token),
            instance_type: Some(order.launch.shape.instance_type.clone()),
            quantity: Some(1),
            tag_specifications: vec![tag_specification("dedicated-host", &tags)],
        };
        let answer = self.client.call(&request).await.map_err(|mut error| {
            error.message = format!("failed to allocate dedicated host: {}", error.message);
            error
        })?;
        answer.host_ids.into_iter().next().ok_or_else(|| {
            let why = "no host IDs returned from AllocateHosts";
            CloudError::new(ErrorClass::Transient, OPERATION, "", why)
        })
    }

    /// Gives back the hosts that were allocated for a Machine.
    pub(crate) async fn release_hosts(&self, machine_uid: &str) -> Result<(), CloudError> {
        let mut request = requests::DescribeHostsRequest {
            filter: vec![
                filter(&format!("tag:{MACHINE_UID_TAG}"), &[machine_uid.to_owned()]),
                filter("state", &["available".to_owned(), "under-assessment".to_owned()]),
            ],
            ..Default::default()
        };
        let mut ids = Vec::new();
        loop {
            let page = self.client.call(&request).await?;
            ids.extend(page.hosts.into_iter().filter_map(|host| host.host_id));
            match page.next_token {
                Some(token) => request.next_token = Some(token),
                None => break,
            }
        }
        if ids.is_empty() { Ok(()) } else { self.release_by_id(ids).await }
    }

    pub(crate) async fn release_by_id(&self, ids: Vec<String>) -> Result<(), CloudError> {
        let request = requests::ReleaseHostsRequest { host_ids: ids };
        let failed = self.client.call(&request).await?.unsuccessful;
        let Some(first) = failed.into_iter().next() else { return Ok(()) };
        let error = first.error.unwrap_or_default();
        let (code, message) = (error.code.unwrap_or_default(), error.message.unwrap_or_default());
        let class = crate::errors::classify(&code, &message);
        if class == ErrorClass::NotFound {
            return Ok(());
        }
        let host = first.resource_id.unwrap_or_default();
        let message = format!("failed to release dedicated host {host}: {message}");
        // A host whose instance is still leaving is refused as a wrong state: later it works.
        let class = if class == ErrorClass::Configuration { ErrorClass::InUse } else { class };
        Err(CloudError::new(class, "ReleaseHosts", &code, message))
    }
}
