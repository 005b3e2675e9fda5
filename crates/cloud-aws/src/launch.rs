//! Launches.

use fleetwright_cloud::{
    CloudError, Instance, Launch, LaunchOrder, Shape, Tag, tags::without_repetitions,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{cloud::AwsCloud, instance::instance, model::ec2::requests};

const OPERATION: &str = "RunInstances";

/// What is tagged together with an instance.
const TAGGED: [&str; 2] = ["instance", "volume"];
/// And with one from the spot market.
const SPOT_REQUEST: &str = "spot-instances-request";

/// A launch in our own form: what is sent, but for what differs from Machine to Machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LaunchRequest {
    pub(crate) run: requests::RunInstancesRequest,
    pub(crate) tags: Vec<Tag>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<HostRequest>,
}

/// A host that is allocated for the instance alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HostRequest {
    pub(crate) zone: String,
    pub(crate) tags: Vec<Tag>,
}

impl LaunchRequest {
    pub(crate) fn into_launch(self, shape: Shape) -> Result<Launch, CloudError> {
        let unwritable = |error: serde_json::Error| {
            CloudError::configuration(OPERATION, format!("the launch cannot be written: {error}"))
        };
        let request = serde_json::to_value(&self).map_err(unwritable)?;
        // Members are sorted: the same launch is the same text.
        let text = serde_json::to_vec(&request).map_err(unwritable)?;
        Ok(Launch { request, hash: format!("{:x}", Sha256::digest(text)), shape })
    }
}

/// Tags for a kind of resource.
pub(crate) fn tag_specification(resource: &str, tags: &[Tag]) -> requests::TagSpecification {
    requests::TagSpecification { resource_type: Some(resource.to_owned()), tags: wire_tags(tags) }
}

/// Tags as they are sent.
pub(crate) fn wire_tags(tags: &[Tag]) -> Vec<requests::Tag> {
    let tag =
        |tag: &Tag| requests::Tag { key: Some(tag.key.clone()), value: Some(tag.value.clone()) };
    tags.iter().map(tag).collect()
}

/// The request of an order: the launch, how many, for whom.
pub(crate) fn run_request(
    launch: LaunchRequest,
    order: &LaunchOrder,
) -> requests::RunInstancesRequest {
    let LaunchRequest { mut run, tags, host: _ } = launch;
    let tags = without_repetitions(tags.into_iter().chain(order.tags.iter().cloned()));
    let spot = order.launch.shape.interruptible.then_some(SPOT_REQUEST);
    let resources = TAGGED.into_iter().chain(spot);
    run.tag_specifications = resources.map(|kind| tag_specification(kind, &tags)).collect();
    run.client_token = Some(order.token.clone());
    run.min_count = Some(i64::from(order.count.min));
    run.max_count = Some(i64::from(order.count.max));
    run
}

impl AwsCloud {
    pub(crate) async fn launch_instances(
        &self,
        order: LaunchOrder,
    ) -> Result<Vec<Instance>, CloudError> {
        let launch = LaunchRequest::deserialize(&order.launch.request).map_err(|error| {
            CloudError::configuration(OPERATION, format!("the launch cannot be read: {error}"))
        })?;
        let host = launch.host.clone();
        let mut request = run_request(launch, &order);
        if let Some(host) = host {
            let id = self.allocate_host(&order, &host).await?;
            request.placement.get_or_insert_default().host_id = Some(id);
        }
        let answer = self.client.call(&request).await?;
        let shown = answer.instances.iter();
        let mut instances: Vec<Instance> =
            shown.filter_map(|shown| instance(shown, &self.client.region, &[])).collect();
        instances.sort_by_key(|instance| (instance.launch_index, instance.id.clone()));
        Ok(instances)
    }
}

#[cfg(test)]
mod tests {
    use fleetwright_cloud::Count;

    use super::*;

    fn order(interruptible: bool) -> LaunchOrder {
        let request = LaunchRequest {
            run: requests::RunInstancesRequest::default(),
            tags: vec![Tag::new("a", "1"), Tag::owned_by("c")],
            host: None,
        };
        let shape = Shape { interruptible, ..Shape::default() };
        LaunchOrder {
            token: "token".to_owned(),
            launch: request.into_launch(shape).unwrap(),
            count: Count { min: 1, max: 3 },
            tags: vec![Tag::new("a", "2"), Tag::name("worker-0")],
        }
    }

    #[test]
    fn an_order_adds_what_differs() {
        let order = order(false);
        let launch = LaunchRequest::deserialize(&order.launch.request).unwrap();
        let run = run_request(launch, &order);
        assert_eq!((run.min_count, run.max_count), (Some(1), Some(3)));
        assert_eq!(run.client_token.as_deref(), Some("token"));
        let kinds: Vec<_> =
            run.tag_specifications.iter().map(|it| it.resource_type.clone()).collect();
        assert_eq!(kinds, [Some("instance".to_owned()), Some("volume".to_owned())]);
        let keys: Vec<_> =
            run.tag_specifications[0].tags.iter().filter_map(|tag| tag.key.clone()).collect();
        assert_eq!(keys, ["a", "kubernetes.io/cluster/c", "Name"]);
        assert_eq!(run.tag_specifications[0].tags, run.tag_specifications[1].tags);
    }

    #[test]
    fn a_spot_request_is_tagged_as_well() {
        let order = order(true);
        let launch = LaunchRequest::deserialize(&order.launch.request).unwrap();
        assert_eq!(run_request(launch, &order).tag_specifications.len(), 3);
    }

    #[test]
    fn the_hash_is_that_of_the_launch_alone() {
        let (one, mut two) = (order(false), order(false));
        two.tags.clear();
        two.token = "other".to_owned();
        assert_eq!(one.launch.hash, two.launch.hash);
        assert_eq!(one.launch.hash.len(), 64);
    }
}
