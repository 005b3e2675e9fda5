//! Where the services answer.

use std::collections::BTreeMap;

use fleetwright_cloud::CloudError;
use http::Uri;

use crate::model::Service;

/// Where the services answer: where the vendor says, or elsewhere (a simulator, a private link).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints(BTreeMap<String, Uri>);

impl Endpoints {
    /// Sends the calls of a service (`ec2`, `elb`, `elbv2`, `sts`) elsewhere.
    #[must_use]
    pub fn with(mut self, service: &str, uri: Uri) -> Self {
        self.0.insert(service.to_owned(), uri);
        self
    }

    /// Sends the calls of all services elsewhere.
    #[must_use]
    pub fn all(uri: &Uri) -> Self {
        let services = crate::model::SERVICES.iter();
        Self(services.map(|(service, _)| (service.name.to_owned(), uri.clone())).collect())
    }

    /// What the environment says, in the words of the vendor's own tools: `AWS_ENDPOINT_URL` and
    /// `AWS_ENDPOINT_URL_EC2`. What was set before wins.
    #[must_use]
    pub fn or_from(mut self, environment: &BTreeMap<String, String>) -> Self {
        for (service, variable) in [
            ("ec2", "AWS_ENDPOINT_URL_EC2"),
            ("elb", "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING"),
            ("elbv2", "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2"),
            ("sts", "AWS_ENDPOINT_URL_STS"),
        ] {
            let set = environment.get(variable).or_else(|| environment.get("AWS_ENDPOINT_URL"));
            if let Some(uri) = set.and_then(|text| text.parse().ok()) {
                self.0.entry(service.to_owned()).or_insert(uri);
            }
        }
        self
    }

    /// What the cluster says (`serviceEndpoints` of its Infrastructure). What was set before wins:
    /// who starts the process knows better.
    pub(crate) fn or_named(
        mut self,
        endpoints: &BTreeMap<String, String>,
    ) -> Result<Self, CloudError> {
        for (name, url) in endpoints {
            let uri: Uri = url.parse().map_err(|error| {
                let why = format!("serviceEndpoints: the url {url:?} of {name} is none: {error}");
                CloudError::configuration("Connect", why)
            })?;
            // Services that we do not call may have endpoints as well.
            let services = crate::model::SERVICES.iter().map(|(service, _)| service);
            for service in services.filter(|it| it.endpoint == name || it.name == name) {
                self.0.entry(service.name.to_owned()).or_insert_with(|| uri.clone());
            }
        }
        Ok(self)
    }

    /// Where a service answers in a region.
    pub(crate) fn of(&self, service: Service, region: &str) -> Result<Uri, http::uri::InvalidUri> {
        if let Some(uri) = self.0.get(service.name) {
            return Ok(uri.clone());
        }
        format!("https://{}.{region}.{}/", service.endpoint, domain(region)).parse()
    }
}

fn domain(region: &str) -> &'static str {
    match region {
        _ if region.starts_with("cn-") => "amazonaws.com.cn",
        _ if region.starts_with("us-iso-") => "c2s.ic.gov",
        _ if region.starts_with("us-isob-") => "sc2s.sgov.gov",
        _ if region.starts_with("eusc-") => "amazonaws.eu",
        _ => "amazonaws.com",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ec2, elbv2};

    #[test]
    fn the_vendors_and_ours() {
        let endpoints = Endpoints::default();
        let of = |endpoints: &Endpoints, service, region: &str| {
            endpoints.of(service, region).unwrap().to_string()
        };
        assert_eq!(
            of(&endpoints, elbv2::SERVICE, "eu-central-1"),
            "https://elasticloadbalancing.eu-central-1.amazonaws.com/"
        );
        assert_eq!(
            of(&endpoints, ec2::SERVICE, "cn-north-1"),
            "https://ec2.cn-north-1.amazonaws.com.cn/"
        );
        assert!(endpoints.of(ec2::SERVICE, "not a region").is_err());
        let environment = BTreeMap::from([
            ("AWS_ENDPOINT_URL_EC2".to_owned(), "http://127.0.0.1:1".to_owned()),
            ("AWS_ENDPOINT_URL".to_owned(), "http://127.0.0.1:2".to_owned()),
        ]);
        let endpoints = endpoints.or_from(&environment);
        assert_eq!(of(&endpoints, ec2::SERVICE, "r"), "http://127.0.0.1:1/");
        assert_eq!(of(&endpoints, elbv2::SERVICE, "r"), "http://127.0.0.1:2/");
        let ours = Endpoints::default().with("ec2", Uri::from_static("http://127.0.0.1:3"));
        assert_eq!(of(&ours.or_from(&environment), ec2::SERVICE, "r"), "http://127.0.0.1:3/");
    }

    #[test]
    fn the_clusters_after_ours() {
        let of = |endpoints: &Endpoints, service, region: &str| {
            endpoints.of(service, region).unwrap().to_string()
        };
        let named = |name: &str, url: &str| BTreeMap::from([(name.to_owned(), url.to_owned())]);
        let balancing = named("elasticloadbalancing", "https://lb.example.com");
        let endpoints = Endpoints::default().or_named(&balancing).unwrap();
        assert_eq!(of(&endpoints, elbv2::SERVICE, "r"), "https://lb.example.com/");
        assert_eq!(of(&endpoints, crate::model::elb::SERVICE, "r"), "https://lb.example.com/");
        assert_eq!(of(&endpoints, ec2::SERVICE, "r"), "https://ec2.r.amazonaws.com/");
        let ours = Endpoints::default().with("ec2", Uri::from_static("http://127.0.0.1:3"));
        let endpoints = ours.or_named(&named("ec2", "https://ec2.example.com")).unwrap();
        assert_eq!(of(&endpoints, ec2::SERVICE, "r"), "http://127.0.0.1:3/");
        let unknown = Endpoints::default().or_named(&named("iam", "https://i.example.com"));
        assert_eq!(unknown.unwrap(), Endpoints::default());
        let error = Endpoints::default().or_named(&named("ec2", "https://a b")).unwrap_err();
        assert!(error.message.contains("https://a b"), "{error}");
    }
}
