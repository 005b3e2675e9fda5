//! An account in a region.

use std::collections::BTreeSet;

use fleetwright_api::aws::AWSMachineProviderConfig;
use fleetwright_cloud::{
    Cloud, CloudError, ErrorClass, Instance, InstanceType, Launch, LaunchOrder, Leftover, Other,
    PlacementGroups, PortFuture, ResolveRequest, Tag,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    client::Client,
    hosts::on_own_host,
    instance::instance,
    launch::wire_tags,
    lookups::Lookups,
    model::ec2::{requests, responses},
    resolve::spec_tags,
    rules::IpFamily,
};

/// Instances in a page.
const PAGE: i64 = 1000;
/// Values that a filter takes.
pub(crate) const FILTER_VALUES: usize = 200;
/// Resources that a call takes.
const RESOURCES: usize = 500;

/// An account in a region.
pub struct AwsCloud {
    pub(crate) client: Client,
    pub(crate) lookups: Lookups,
    pub(crate) ip_family: IpFamily,
}

impl AwsCloud {
    pub(crate) fn new(client: Client, ip_family: IpFamily) -> Self {
        Self { client, lookups: Lookups::new(), ip_family }
    }

    /// Every instance that passes the filters, read in pages.
    pub(crate) async fn read(
        &self,
        filters: Vec<requests::Filter>,
    ) -> Result<Vec<Instance>, CloudError> {
        let mut request = requests::DescribeInstancesRequest {
            filters,
            max_results: Some(PAGE),
            ..Default::default()
        };
        let mut shown = Vec::new();
        loop {
            let page = self.client.call(&request).await?;
            shown.extend(page.reservations.into_iter().flat_map(|it| it.instances));
            match page.next_token {
                Some(token) => request.next_token = Some(token),
                None => break,
            }
        }
        self.in_our_words(&shown).await
    }

    async fn in_our_words(
        &self,
        shown: &[responses::Instance],
    ) -> Result<Vec<Instance>, CloudError> {
        let networks: BTreeSet<String> =
            shown.iter().filter_map(|shown| shown.vpc_id.clone()).collect();
        let domains = self.lookups.domains(&self.client, networks).await?;
        let in_our_words = |shown: &responses::Instance| {
            let domains = shown.vpc_id.as_ref().and_then(|network| domains.get(network));
            instance(shown, &self.client.region, domains.map(Vec::as_slice).unwrap_or_default())
        };
        Ok(shown.iter().filter_map(in_our_words).collect())
    }

    /// Terminates, leaving out what the service does not know: it refuses the whole call for one.
    async fn terminate(&self, ids: &[String]) -> Result<(), CloudError> {
        let mut left: BTreeSet<String> = ids.iter().cloned().collect();
        while !left.is_empty() {
            let request = requests::TerminateInstancesRequest {
                instance_ids: left.iter().cloned().collect(),
            };
            match self.client.call(&request).await {
                Ok(_) => return Ok(()),
                Err(error) if error.class == ErrorClass::NotFound => {
                    let before = left.len();
                    left.retain(|id| !names(&error.message, id));
                    if left.len() == before {
                        return self.terminate_each(left).await;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One by one, when the refusal did not say which are not known.
    async fn terminate_each(&self, ids: BTreeSet<String>) -> Result<(), CloudError> {
        for id in ids {
            let request = requests::TerminateInstancesRequest { instance_ids: vec![id] };
            match self.client.call(&request).await {
                Err(error) if error.class != ErrorClass::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a message names an identifier as a whole word.
fn names(message: &str, id: &str) -> bool {
    message.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == id)
}

/// A filter.
pub(crate) fn filter(name: &str, values: &[String]) -> requests::Filter {
    requests::Filter { name: Some(name.to_owned()), values: values.to_vec() }
}

/// Passes what belongs to a cluster.
pub(crate) fn owned_filter(cluster: &str) -> requests::Filter {
    let owned = Tag::owned_by(cluster);
    filter(&format!("tag:{}", owned.key), &[owned.value])
}

impl Cloud for AwsCloud {
    fn resolve(&self, request: ResolveRequest) -> PortFuture<'_, Launch> {
        Box::pin(self.resolve_launch(request))
    }

    fn launch(&self, order: LaunchOrder) -> PortFuture<'_, Vec<Instance>> {
        Box::pin(self.launch_instances(order))
    }

    fn inventory<'a>(&'a self, cluster: &'a str) -> PortFuture<'a, Vec<Instance>> {
        Box::pin(self.read(vec![owned_filter(cluster)]))
    }

    fn instances(&self, ids: BTreeSet<String>) -> PortFuture<'_, Vec<Instance>> {
        Box::pin(async move {
            let ids: Vec<String> = ids.into_iter().collect();
            let mut found = Vec::new();
            for ids in ids.chunks(FILTER_VALUES) {
                found.extend(self.read(vec![filter("instance-id", ids)]).await?);
            }
            Ok(found)
        })
    }

    fn tagged<'a>(&'a self, key: &'a str, value: &'a str) -> PortFuture<'a, Vec<Instance>> {
        Box::pin(self.read(vec![filter(&format!("tag:{key}"), &[value.to_owned()])]))
    }

    fn tag<'a>(&'a self, ids: &'a [String], tags: &'a [Tag]) -> PortFuture<'a, ()> {
        Box::pin(async move {
            for ids in ids.chunks(RESOURCES) {
                let request =
                    requests::CreateTagsRequest { resources: ids.to_vec(), tags: wire_tags(tags) };
                self.client.call(&request).await?;
            }
            Ok(())
        })
    }

    fn retire<'a>(&'a self, ids: &'a [String]) -> PortFuture<'a, ()> {
        Box::pin(async move {
            for ids in ids.chunks(RESOURCES) {
                self.terminate(ids).await?;
            }
            Ok(())
        })
    }

    fn register<'a>(
        &'a self,
        provider_spec: &'a Value,
        instance: &'a Instance,
    ) -> PortFuture<'a, ()> {
        Box::pin(self.register_instance(provider_spec, instance))
    }

    fn deregister<'a>(
        &'a self,
        provider_spec: &'a Value,
        instance: &'a Instance,
    ) -> PortFuture<'a, ()> {
        Box::pin(self.deregister_instance(provider_spec, instance))
    }

    fn release<'a>(&'a self, provider_spec: &'a Value, machine_uid: &'a str) -> PortFuture<'a, ()> {
        Box::pin(async move {
            if on_own_host(provider_spec) { self.release_hosts(machine_uid).await } else { Ok(()) }
        })
    }

    fn wanted_tags(&self, provider_spec: &Value, cluster: &str, cluster_tags: &[Tag]) -> Vec<Tag> {
        let config = AWSMachineProviderConfig::deserialize(provider_spec).unwrap_or_default();
        spec_tags(&config, cluster, cluster_tags)
    }

    fn leftovers<'a>(&'a self, cluster: &'a str) -> PortFuture<'a, Vec<Leftover>> {
        Box::pin(self.read_leftovers(cluster))
    }

    fn others<'a>(&'a self, cluster: &'a str) -> PortFuture<'a, Vec<Other>> {
        Box::pin(self.read_others(cluster))
    }

    fn remove<'a>(&'a self, leftover: &'a Leftover) -> PortFuture<'a, ()> {
        Box::pin(self.remove_leftover(leftover))
    }

    fn instance_type<'a>(&'a self, name: &'a str) -> PortFuture<'a, Option<InstanceType>> {
        Box::pin(self.lookups.instance_type(&self.client, name))
    }

    fn placement_groups(&self) -> Option<&dyn PlacementGroups> {
        Some(self)
    }
}
