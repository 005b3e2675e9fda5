//! Where the API server finds the webhooks, and what the certificate must therefore say.

use fleetwright_admission::Endpoint;
use fleetwright_certificates::Holder;
use fleetwright_runtime::config::WebhooksConfig;
use http::Uri;

use crate::seed::SYSTEM_NAMESPACE;

/// The port of the Service; it leads to the port that we listen on.
const SERVICE_PORT: u16 = 443;

/// How the API server reaches the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By a Service of the cluster.
    Service(String),
    /// By a URL.
    Url {
        /// As it stands in a URL: an IPv6 address has brackets.
        host: String,
        /// None for the one that we listen on.
        port: Option<u16>,
    },
}

/// The API server could never reach that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// The URL will not do.
    #[error(
        "webhooks.url: {url:?} {problem}: say https://HOST:PORT, such as https://10.0.0.5:9443"
    )]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No Service can have that name.
    #[error(
        "webhooks.service: {0:?} is not the name of a Service: say one such as fleetwright-webhooks"
    )]
    Service(String),
}

impl Reach {
    /// What the configuration says.
    pub fn of(config: &WebhooksConfig) -> Result<Self, ReachError> {
        if config.url.is_empty() {
            let name = &config.service;
            let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let fits = name.len() <= 63
                && name.starts_with(|c: char| c.is_ascii_lowercase())
                && !name.ends_with('-')
                && name.chars().all(letters);
            return if fits {
                Ok(Self::Service(name.clone()))
            } else {
                Err(ReachError::Service(name.clone()))
            };
        }
        Self::parse(&config.url)
            .map_err(|problem| ReachError::Url { url: config.url.clone(), problem })
    }

    fn parse(url: &str) -> Result<Self, &'static str> {
        let uri: Uri = url.parse().map_err(|_| "is no URL")?;
        if uri.scheme_str() != Some("https") {
            return Err("is not https, and the API server calls webhooks over TLS only");
        }
        let authority = uri.authority().ok_or("names no host")?;
        if authority.as_str().contains('@') {
            return Err("holds a user name, which the API server refuses");
        }
        if uri.query().is_some() || url.contains('#') || !matches!(uri.path(), "" | "/") {
            return Err("holds more than a host and a port");
        }
        // `Authority::port` has none where the number is too great.
        let port = match authority.as_str().strip_prefix(authority.host()).unwrap_or_default() {
            "" => 443,
            port => port[1..].parse().map_err(|_| "has no port that there could be")?,
        };
        Ok(Self::Url {
            host: authority.host().to_owned(),
            port: Some(port).filter(|port| *port > 0),
        })
    }

    /// For the configurations, when we listen on a port.
    pub fn endpoint(&self, listening: u16) -> Endpoint {
        match self {
            Self::Service(name) => Endpoint::Service {
                namespace: SYSTEM_NAMESPACE.to_owned(),
                name: name.clone(),
                port: SERVICE_PORT,
            },
            Self::Url { host, port } => {
                Endpoint::Url(format!("https://{host}:{}", port.unwrap_or(listening)))
            }
        }
    }

    /// Whom the certificate must be for.
    pub fn holder(&self) -> Holder {
        let names = match self {
            Self::Service(name) => {
                let short = format!("{name}.{SYSTEM_NAMESPACE}.svc");
                vec![format!("{short}.cluster.local"), short]
            }
            Self::Url { host, .. } => {
                vec![host.trim_start_matches('[').trim_end_matches(']').to_owned()]
            }
        };
        Holder(names.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(service: &str, url: &str) -> Result<Reach, String> {
        let config = WebhooksConfig {
            service: service.to_owned(),
            url: url.to_owned(),
            ..WebhooksConfig::default()
        };
        Reach::of(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn a_url_or_a_service_is_where_the_server_asks() {
        let rows = [
            ("https://10.0.0.5:9443", "https://10.0.0.5:9443", "10.0.0.5"),
            ("https://hooks.example/", "https://hooks.example:443", "hooks.example"),
            ("https://[::1]:0", "https://[::1]:1234", "::1"),
        ];
        for (url, wanted, name) in rows {
            let reach = of("", url).expect(url);
            assert_eq!(reach.endpoint(1234), Endpoint::Url(wanted.to_owned()), "{url}");
            assert_eq!(reach.holder(), Holder([name.to_owned()].into()), "{url}");
        }
        let reach = of("hooks", "").expect("a Service");
        let endpoint = Endpoint::Service {
            namespace: "fleetwright-system".to_owned(),
            name: "hooks".to_owned(),
            port: 443,
        };
        assert_eq!(reach.endpoint(9443), endpoint);
        assert!(reach.holder().0.contains("hooks.fleetwright-system.svc"));
    }

    #[test]
    fn what_the_server_could_not_call_is_told_with_the_fix() {
        let rows = [
            ("x", "10.0.0.5", "is not https"),
            ("x", "http://10.0.0.5", "is not https"),
            ("x", "https://a:b@c", "a user name"),
            ("x", "https://a/b", "more than a host"),
            ("x", "https://a?b", "more than a host"),
            ("x", "https://a#b", "more than a host"),
            ("x", "https:// a", "is no URL"),
            ("x", "https://a:99999", "has no port"),
            ("", "", "webhooks.service: \"\" is not"),
            ("A_b", "", "webhooks.service: \"A_b\" is not"),
        ];
        for (service, url, wanted) in rows {
            let error = of(service, url).expect_err(url);
            assert!(error.contains(wanted), "{url}: {error}");
        }
    }
}
