//! AWS, as the environment says how it is reached.

use std::collections::BTreeMap;

use anyhow::Context;
use fleetwright_clock::{Clock, Random};
use fleetwright_cloud::{HttpOptions, Proxies, http_client};
use fleetwright_cloud_aws::{AwsConnector, AwsOptions, Endpoints};

/// Opens accounts: `AWS_ENDPOINT_URL…` and `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY` say where,
/// the ambient credentials as whom.
pub(crate) fn connector(clock: &Clock, random: &Random) -> anyhow::Result<AwsConnector> {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let proxies = Proxies::from_environment(&environment)?;
    let options = HttpOptions { proxies, ..HttpOptions::default() };
    let transport = http_client(&options).context("cannot make a client for AWS")?;
    Ok(AwsConnector::new(AwsOptions {
        endpoints: Endpoints::default().or_from(&environment),
        environment,
        ..AwsOptions::new(transport, clock.clone(), random.fork())
    }))
}
