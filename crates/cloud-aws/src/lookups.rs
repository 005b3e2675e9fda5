//! What provider specs name and many Machines share: looked up once, kept for a while.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use fleetwright_cloud::{CloudError, Coalesced, ErrorClass, InstanceType};
use parking_lot::Mutex;

use crate::{
    addresses::dhcp_domains,
    client::Client,
    instance_types::instance_type,
    model::{
        Operation,
        ec2::{requests, responses},
        elbv2,
    },
};

/// Images, subnets, groups: they change when somebody works on the account, and a Machine that
/// fails for one should not fail for long after it was made.
const A_WHILE: Duration = Duration::from_mins(5);
/// What the vendor offers.
const A_DAY: Duration = Duration::from_hours(24);
/// DHCP options of networks hardly ever change.
const AN_HOUR: Duration = Duration::from_hours(1);

/// The identifier of the options of a network that has none.
const NO_DHCP_OPTIONS: &str = "default";

type Cache<T> = Coalesced<String, Arc<Vec<T>>>;

pub(crate) struct Lookups {
    images: Cache<responses::Image>,
    subnets: Cache<responses::Subnet>,
    security_groups: Cache<String>,
    zones: Cache<responses::AvailabilityZone>,
    types: Coalesced<String, Option<InstanceType>>,
    domains: Coalesced<String, Vec<String>>,
    /// The domains of a network as they were known last: an address does not vanish because they
    /// cannot be read now.
    last_domains: Mutex<BTreeMap<String, Vec<String>>>,
    target_groups: Cache<elbv2::responses::TargetGroup>,
}

impl Lookups {
    pub(crate) fn new() -> Self {
        Self {
            images: Coalesced::new(A_WHILE),
            subnets: Coalesced::new(A_WHILE),
            security_groups: Coalesced::new(A_WHILE),
            zones: Coalesced::new(A_DAY),
            types: Coalesced::new(A_DAY),
            domains: Coalesced::new(AN_HOUR),
            last_domains: Mutex::default(),
            target_groups: Coalesced::new(A_WHILE),
        }
    }

    pub(crate) async fn images(
        &self,
        client: &Client,
        request: requests::DescribeImagesRequest,
    ) -> Result<Arc<Vec<responses::Image>>, CloudError> {
        ask(&self.images, client, request, |answer| answer.images).await
    }

    pub(crate) async fn subnets(
        &self,
        client: &Client,
        request: requests::DescribeSubnetsRequest,
    ) -> Result<Arc<Vec<responses::Subnet>>, CloudError> {
        ask(&self.subnets, client, request, |answer| answer.subnets).await
    }

    pub(crate) async fn zones(
        &self,
        client: &Client,
        name: &str,
    ) -> Result<Arc<Vec<responses::AvailabilityZone>>, CloudError> {
        let request =
            requests::DescribeAvailabilityZonesRequest { zone_names: vec![name.to_owned()] };
        ask(&self.zones, client, request, |answer| answer.availability_zones).await
    }

    /// The identifiers of the security groups that pass filters.
    pub(crate) async fn security_groups(
        &self,
        client: &Client,
        request: requests::DescribeSecurityGroupsRequest,
    ) -> Result<Arc<Vec<String>>, CloudError> {
        let key = key(&request);
        let client = client.clone();
        let ask = || async move {
            let mut request = request;
            let mut found = Vec::new();
            loop {
                let page = client.call(&request).await?;
                found.extend(page.security_groups.into_iter().filter_map(|group| group.group_id));
                match page.next_token {
                    Some(token) => request.next_token = Some(token),
                    None => break,
                }
            }
            // The order is no part of what was asked for, and must not change a launch.
            found.sort();
            Ok(Arc::new(found))
        };
        self.security_groups.get(&key, ask).await
    }

    pub(crate) async fn instance_type(
        &self,
        client: &Client,
        name: &str,
    ) -> Result<Option<InstanceType>, CloudError> {
        let client = client.clone();
        let request =
            requests::DescribeInstanceTypesRequest { instance_types: vec![name.to_owned()] };
        let ask = || async move {
            match client.call(&request).await {
                Ok(answer) => Ok(answer.instance_types.iter().find_map(instance_type)),
                Err(error) if error.class == ErrorClass::Configuration => Ok(None),
                Err(error) => Err(error),
            }
        };
        self.types.get(&name.to_owned(), ask).await
    }

    /// The domains of networks, for the names of their instances.
    pub(crate) async fn domains(
        &self,
        client: &Client,
        networks: BTreeSet<String>,
    ) -> Result<BTreeMap<String, Vec<String>>, CloudError> {
        let mut domains = BTreeMap::new();
        for network in networks {
            let client = client.clone();
            let asked = network.clone();
            let found =
                self.domains.get(&network, || async move { ask_domains(&client, asked).await });
            let found = match found.await {
                Ok(found) => {
                    self.last_domains.lock().insert(network.clone(), found.clone());
                    found
                }
                Err(error) => match self.last_domains.lock().get(&network) {
                    Some(known) => known.clone(),
                    None if error.class == ErrorClass::Credentials => {
                        tracing::warn!(
                            "names under the network's own domains are not shown: {error}"
                        );
                        Vec::new()
                    }
                    None => return Err(error),
                },
            };
            domains.insert(network, found);
        }
        Ok(domains)
    }

    /// The target groups of network load balancers.
    pub(crate) async fn target_groups(
        &self,
        client: &Client,
        names: &BTreeSet<String>,
    ) -> Result<Arc<Vec<elbv2::responses::TargetGroup>>, CloudError> {
        let client = client.clone();
        let request =
            elbv2::requests::DescribeLoadBalancersInput { names: names.iter().cloned().collect() };
        let key = key(&request);
        let ask = || async move {
            let mut groups = Vec::new();
            for balancer in client.call(&request).await?.load_balancers {
                let request = elbv2::requests::DescribeTargetGroupsInput {
                    load_balancer_arn: balancer.load_balancer_arn,
                };
                groups.extend(client.call(&request).await?.target_groups);
            }
            Ok(Arc::new(groups))
        };
        self.target_groups.get(&key, ask).await
    }
}

async fn ask<O, T>(
    cache: &Cache<T>,
    client: &Client,
    request: O,
    read: fn(O::Output) -> Vec<T>,
) -> Result<Arc<Vec<T>>, CloudError>
where
    O: Operation + 'static,
    T: Send + Sync + 'static,
{
    let key = key(&request);
    let client = client.clone();
    cache.get(&key, || async move { Ok(Arc::new(read(client.call(&request).await?))) }).await
}

fn key<O: Operation>(request: &O) -> String {
    serde_json::to_string(request).unwrap_or_default()
}

async fn ask_domains(client: &Client, network: String) -> Result<Vec<String>, CloudError> {
    let request = requests::DescribeVpcsRequest { vpc_ids: vec![network] };
    let none_if_gone = |error: CloudError| match error.class {
        ErrorClass::NotFound => Ok(Vec::new()),
        _ => Err(error),
    };
    let networks = match client.call(&request).await {
        Ok(answer) => answer.vpcs,
        Err(error) => return none_if_gone(error),
    };
    let options = networks.into_iter().find_map(|network| network.dhcp_options_id);
    let Some(options) = options.filter(|options| options != NO_DHCP_OPTIONS) else {
        return Ok(Vec::new());
    };
    let request = requests::DescribeDhcpOptionsRequest { dhcp_options_ids: vec![options] };
    match client.call(&request).await {
        Ok(answer) => Ok(answer.dhcp_options.first().map(dhcp_domains).unwrap_or_default()),
        Err(error) => none_if_gone(error),
    }
}
