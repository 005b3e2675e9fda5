//! Load balancers that a provider spec names.

use std::collections::BTreeSet;

use fleetwright_api::aws::{AWSMachineProviderConfig, LoadBalancerType};
use fleetwright_cloud::{CloudError, ErrorClass, Instance};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    cloud::AwsCloud,
    instance::private_ip,
    model::{elb::requests as elb, elbv2::requests as elbv2},
};

/// Targets of these kinds are instances; others are not ours to fill.
const BY_INSTANCE: &str = "instance";
const BY_ADDRESS: &str = "ip";

/// The names of the load balancers of a provider spec.
#[derive(Debug, Default)]
struct Named {
    classic: BTreeSet<String>,
    network: BTreeSet<String>,
}

fn named(provider_spec: &Value) -> Result<Named, CloudError> {
    let config = AWSMachineProviderConfig::deserialize(provider_spec).map_err(|error| {
        CloudError::configuration("RegisterTargets", format!("providerSpec.value: {error}"))
    })?;
    let mut named = Named::default();
    for balancer in config.load_balancers {
        match balancer.type_ {
            LoadBalancerType::Classic => named.classic.insert(balancer.name),
            LoadBalancerType::Network => named.network.insert(balancer.name),
            // Admission tells of a word that means nothing; here it is left alone.
            LoadBalancerType::Other(_) => false,
        };
    }
    Ok(named)
}

/// What went wrong with several, told as one; what it means is what the first means.
#[derive(Default)]
struct Failures(Option<CloudError>);

impl Failures {
    fn note(&mut self, name: &str, outcome: Result<(), CloudError>) {
        let Err(mut error) = outcome else { return };
        error.message = format!("{name}: {}", error.message);
        match &mut self.0 {
            Some(first) => first.message = format!("{}, {}", first.message, error.message),
            None => self.0 = Some(error),
        }
    }

    fn outcome(self) -> Result<(), CloudError> {
        self.0.map_or(Ok(()), Err)
    }
}

impl AwsCloud {
    pub(crate) async fn register_instance(
        &self,
        provider_spec: &Value,
        instance: &Instance,
    ) -> Result<(), CloudError> {
        let named = named(provider_spec)?;
        let mut failures = Failures::default();
        for name in named.classic {
            let request = elb::RegisterEndPointsInput {
                load_balancer_name: Some(name.clone()),
                instances: vec![elb::Instance { instance_id: Some(instance.id.clone()) }],
            };
            failures.note(&name, self.client.call(&request).await.map(drop));
        }
        if !named.network.is_empty() {
            let groups = self.lookups.target_groups(&self.client, &named.network).await?;
            for group in groups.iter() {
                let arn = group.target_group_arn.clone().unwrap_or_default();
                let target = match group.target_type.as_deref() {
                    Some(BY_INSTANCE) => Some(instance.id.as_str()),
                    Some(BY_ADDRESS) => private_ip(instance),
                    _ => None,
                };
                let Some(target) = target else { continue };
                let request = elbv2::RegisterTargetsInput {
                    target_group_arn: Some(arn.clone()),
                    targets: vec![elbv2::TargetDescription { id: Some(target.to_owned()) }],
                };
                failures.note(&arn, self.client.call(&request).await.map(drop));
            }
        }
        failures.outcome()
    }

    /// Targets by address stay until they are taken away; those by instance go with it.
    pub(crate) async fn deregister_instance(
        &self,
        provider_spec: &Value,
        instance: &Instance,
    ) -> Result<(), CloudError> {
        let named = named(provider_spec)?;
        let Some(address) = private_ip(instance) else { return Ok(()) };
        if named.network.is_empty() {
            return Ok(());
        }
        let groups = match self.lookups.target_groups(&self.client, &named.network).await {
            Err(error) if error.class == ErrorClass::NotFound => return Ok(()),
            groups => groups?,
        };
        let mut failures = Failures::default();
        for group in groups.iter().filter(|it| it.target_type.as_deref() == Some(BY_ADDRESS)) {
            let arn = group.target_group_arn.clone().unwrap_or_default();
            let request = elbv2::DeregisterTargetsInput {
                target_group_arn: Some(arn.clone()),
                targets: vec![elbv2::TargetDescription { id: Some(address.to_owned()) }],
            };
            match self.client.call(&request).await {
                Err(error) if error.class == ErrorClass::NotFound => {}
                outcome => failures.note(&arn, outcome.map(drop)),
            }
        }
        failures.outcome()
    }
}
