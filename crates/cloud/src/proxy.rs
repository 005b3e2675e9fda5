//! Proxies, as the environment names them.
//!
//! `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, in upper or lower case, with the meaning that cluster
//! components give them: what is on this host is reached directly, `NO_PROXY` lists names, addresses
//! and networks that are, too. Whatever goes through a proxy goes through a tunnel.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, Uri, uri::Scheme};
use percent_encoding::percent_decode_str;

/// A proxy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {why}")]
pub struct ProxyError {
    variable: &'static str,
    why: String,
}

/// A proxy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) uri: Uri,
    /// What it wants to see before it lets anybody through. Secret.
    pub(crate) authorization: Option<HeaderValue>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.uri)
    }
}

/// Which proxy leads where. Without any, everything is reached directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    direct: Vec<Direct>,
}

/// What is reached without a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Direct {
    All,
    Network(IpAddr, u32),
    /// A domain, whether it counts itself or only what is below it, and a port if only that.
    Domain {
        name: String,
        itself: bool,
        port: Option<u16>,
    },
}

impl Proxies {
    /// What the environment says.
    pub fn from_environment(environment: &BTreeMap<String, String>) -> Result<Self, ProxyError> {
        let get = |upper: &'static str| {
            let found = environment.get(upper).or_else(|| environment.get(&upper.to_lowercase()));
            found.map(|value| value.trim()).filter(|value| !value.is_empty())
        };
        let proxy = |variable| get(variable).map(|text| proxy(variable, text)).transpose();
        Ok(Self {
            http: proxy("HTTP_PROXY")?,
            https: proxy("HTTPS_PROXY")?,
            direct: get("NO_PROXY").unwrap_or_default().split(',').filter_map(direct).collect(),
        })
    }

    /// The proxy on the way to `uri`.
    pub(crate) fn of(&self, uri: &Uri) -> Option<&Proxy> {
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let proxy = if secure { self.https.as_ref()? } else { self.http.as_ref()? };
        let host = uri.host()?.trim_matches(['[', ']']).to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let address: Option<IpAddr> = host.parse().ok();
        let near = host == "localhost" || address.is_some_and(is_near);
        let named = || self.direct.iter().any(|it| it.includes(&host, address, port));
        (!near && !named()).then_some(proxy)
    }
}

/// This host, or what answers on its own link: instance metadata.
fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local(),
        IpAddr::V6(address) => {
            // The metadata of an instance on IPv6.
            address.is_loopback() || address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)
        }
    }
}

impl Direct {
    fn includes(&self, host: &str, address: Option<IpAddr>, on: u16) -> bool {
        match self {
            Self::All => true,
            Self::Network(network, bits) => {
                address.is_some_and(|address| same_network(address, *network, *bits))
            }
            Self::Domain { name, itself, port } => {
                let below = host.strip_suffix(name.as_str()).is_some_and(|it| it.ends_with('.'));
                port.is_none_or(|port| port == on) && (below || (*itself && host == name))
            }
        }
    }
}

fn same_network(one: IpAddr, other: IpAddr, bits: u32) -> bool {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            let mask = u32::MAX.checked_shl(Ipv4Addr::BITS.saturating_sub(bits)).unwrap_or(0);
            one.to_bits() & mask == other.to_bits() & mask
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            let mask = u128::MAX.checked_shl(Ipv6Addr::BITS.saturating_sub(bits)).unwrap_or(0);
            one.to_bits() & mask == other.to_bits() & mask
        }
        _ => false,
    }
}

/// An entry of `NO_PROXY`.
fn direct(text: &str) -> Option<Direct> {
    let text = text.trim().to_ascii_lowercase();
    if text.is_empty() {
        return None;
    }
    if text == "*" {
        return Some(Direct::All);
    }
    if let Some((network, bits)) = text.split_once('/')
        && let (Ok(network), Ok(bits)) = (network.parse(), bits.parse())
    {
        return Some(Direct::Network(network, bits));
    }
    if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some(Direct::Network(address, if address.is_ipv4() { 32 } else { 128 }));
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, Some(port.parse().ok()?)),
        None => (text.as_str(), None),
    };
    let name = name.strip_prefix('*').unwrap_or(name);
    let itself = !name.starts_with('.');
    Some(Direct::Domain { name: name.trim_start_matches('.').to_owned(), itself, port })
}

fn proxy(variable: &'static str, text: &str) -> Result<Proxy, ProxyError> {
    // The value may hold a password: it is not repeated.
    let fail = |why: &str| ProxyError { variable, why: why.to_owned() };
    let uri = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri: Uri = uri.parse().map_err(|_| fail("not an address: say http://HOST:PORT"))?;
    if uri.scheme() != Some(&Scheme::HTTP) {
        return Err(fail("only a proxy at http://HOST:PORT can be used"));
    }
    let authority = uri.authority().ok_or_else(|| fail("it names no host"))?.as_str();
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, authority),
    };
    let authorization = user.map(|user| {
        let user: Vec<u8> = percent_decode_str(user).collect();
        let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(user)))
            .map_err(|_| fail("the user cannot be sent"))?;
        value.set_sensitive(true);
        Ok(value)
    });
    let uri = format!("http://{place}").parse().map_err(|_| fail("it names no host"))?;
    Ok(Proxy { uri, authorization: authorization.transpose()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, ProxyError> {
        let owned = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Proxies::from_environment(&owned.collect())
    }

    #[test]
    fn what_is_reached_directly() {
        let no = "a.example.com, .b.example.com,10.1.0.0/16,192.0.2.7,c.example.com:8443,*.d.example,\
                  2001:db8::/32";
        let proxies = proxies(&[("HTTPS_PROXY", "http://p:3128"), ("no_proxy", no)]).unwrap();
        for (uri, proxied) in [
            ("https://ec2.us-east-1.amazonaws.com/", true),
            ("http://ec2.us-east-1.amazonaws.com/", false),
            ("https://a.example.com/", false),
            ("https://x.A.example.com/", false),
            ("https://aa.example.com/", true),
            ("https://b.example.com/", true),
            ("https://x.b.example.com/", false),
            ("https://x.d.example/", false),
            ("https://10.1.2.3/", false),
            ("https://10.2.2.3/", true),
            ("https://192.0.2.7:444/", false),
            ("https://192.0.2.8/", true),
            ("https://[2001:db8::1]/", false),
            ("https://[2001:db9::1]/", true),
            ("https://c.example.com/", true),
            ("https://c.example.com:8443/", false),
            ("https://localhost:5000/", false),
            ("https://127.0.0.1/", false),
            ("https://[::1]/", false),
            ("https://169.254.169.254/", false),
        ] {
            assert_eq!(proxies.of(&uri.parse().unwrap()).is_some(), proxied, "{uri}");
        }
    }

    #[test]
    fn everything_and_nothing() {
        let uri = "https://example.com/".parse().unwrap();
        assert_eq!(Proxies::default().of(&uri), None);
        let all = proxies(&[("HTTPS_PROXY", "http://p:3128"), ("NO_PROXY", "*")]).unwrap();
        assert_eq!(all.of(&uri), None);
        assert_eq!(proxies(&[("HTTPS_PROXY", "  ")]).unwrap(), Proxies::default());
    }

    #[test]
    fn a_user_is_told_to_the_proxy_alone() {
        let proxies = proxies(&[("https_proxy", "ada:p%40ss@proxy.example.com:8080")]).unwrap();
        let proxy = proxies.of(&"https://example.com/".parse().unwrap()).unwrap();
        assert_eq!(proxy.uri, "http://proxy.example.com:8080/");
        let expected = format!("Basic {}", STANDARD.encode("ada:p@ss"));
        assert_eq!(proxy.authorization.as_ref().unwrap(), &expected);
        assert!(!format!("{proxies:?}").contains("p%40ss"));
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_its_secret() {
        for bad in ["https://ada:secret@p:1", "socks5://ada:secret@p", "http://ada:secret@ /"] {
            let error = proxies(&[("HTTPS_PROXY", bad)]).unwrap_err().to_string();
            assert!(error.starts_with("HTTPS_PROXY: ") && !error.contains("secret"), "{error}");
        }
    }
}
