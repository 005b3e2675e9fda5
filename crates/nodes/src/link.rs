//! Which Node belongs to which machine.
//!
//! A Node and a machine that share a provider ID belong together. Without one, an address will do,
//! internal ones first. Two that both have a provider ID, and another, never belong together,
//! whatever addresses they share: clouds give addresses to the next instance.
//!
//! Both sides are found by the same words ([`words`], [`words_of_node`]), so that a change on
//! either side leads to the other through an informer's index, whatever its size.

use std::sync::Arc;

use fleetwright_runtime::Informer;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use crate::facts::provider_id;

/// Name of the index that [`NodeIndex`] keeps, and that informers of machines should use for
/// [`words`].
pub const INDEX: &str = "node-link";

/// Kinds of addresses, the most telling first.
const ADDRESS_KINDS: [&str; 5] =
    ["InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS", "Hostname"];

/// What a machine says of the Node that it will become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Its provider ID.
    pub provider_id: Option<String>,
    /// Its addresses: kind (`InternalIP`) and address.
    pub addresses: Vec<(String, String)>,
}

/// Several where there can be only one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("several Nodes have {what}: {}", nodes.join(", "))]
pub struct Ambiguous {
    /// What they share.
    pub what: String,
    /// The Nodes, sorted.
    pub nodes: Vec<String>,
}

/// The words by which a machine's Node is found.
pub fn words(claim: &Claim) -> Vec<String> {
    let id = claim.provider_id.as_deref().filter(|id| !id.is_empty()).map(id_word);
    let addresses = claim.addresses.iter().filter_map(|(kind, address)| word(kind, address));
    id.into_iter().chain(addresses).collect()
}

/// The words by which a Node's machine is found.
pub fn words_of_node(node: &Node) -> Vec<String> {
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    provider_id(node)
        .map(id_word)
        .into_iter()
        .chain(addresses.filter_map(|address| word(&address.type_, &address.address)))
        .collect()
}

fn id_word(id: &str) -> String {
    format!("providerID={id}")
}

fn word(kind: &str, address: &str) -> Option<String> {
    let known = ADDRESS_KINDS.contains(&kind) && !address.is_empty();
    known.then(|| format!("{kind}={address}"))
}

/// The Node that a claim means, out of those that `find` gives for a word.
pub fn find_node<N: AsRef<Node>>(
    claim: &Claim,
    mut find: impl FnMut(&str) -> Vec<N>,
) -> Result<Option<N>, Ambiguous> {
    let own = claim.provider_id.as_deref().filter(|id| !id.is_empty());
    if let Some(id) = own
        && let Some(node) = one(&id_word(id), find(&id_word(id)))?
    {
        return Ok(Some(node));
    }
    for kind in ADDRESS_KINDS {
        let addresses = claim.addresses.iter().filter(|(of_kind, _)| of_kind == kind);
        for word in addresses.filter_map(|(kind, address)| word(kind, address)) {
            let mut nodes = find(&word);
            nodes.retain(|node| match (own, provider_id(node.as_ref())) {
                (Some(own), Some(other)) => own == other,
                _ => true,
            });
            if let Some(node) = one(&word, nodes)? {
                return Ok(Some(node));
            }
        }
    }
    Ok(None)
}

fn one<N: AsRef<Node>>(word: &str, mut nodes: Vec<N>) -> Result<Option<N>, Ambiguous> {
    if nodes.len() > 1 {
        let mut names: Vec<String> = nodes.iter().map(|node| node.as_ref().name_any()).collect();
        names.sort();
        return Err(Ambiguous { what: word.to_owned(), nodes: names });
    }
    Ok(nodes.pop())
}

/// Nodes by provider ID and address, over an informer.
#[derive(Clone, Debug)]
pub struct NodeIndex(Informer<Node>);

impl NodeIndex {
    /// Indexes the Nodes of an informer.
    pub fn new(nodes: Informer<Node>) -> Self {
        nodes.index(INDEX, words_of_node);
        Self(nodes)
    }

    /// The informer.
    pub fn informer(&self) -> &Informer<Node> {
        &self.0
    }

    /// The Node that a machine claims.
    pub fn find(&self, claim: &Claim) -> Result<Option<Arc<Node>>, Ambiguous> {
        find_node(claim, |word| self.0.by_index(INDEX, word))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{NodeAddress, NodeSpec, NodeStatus};
    use kube::api::ObjectMeta;

    use super::*;

    fn node(name: &str, id: &str, addresses: &[(&str, &str)]) -> Arc<Node> {
        let addresses = addresses.iter().map(|(kind, address)| NodeAddress {
            type_: (*kind).to_owned(),
            address: (*address).to_owned(),
        });
        Arc::new(Node {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            spec: Some(NodeSpec { provider_id: Some(id.to_owned()), ..NodeSpec::default() }),
            status: Some(NodeStatus {
                addresses: Some(addresses.collect()),
                ..NodeStatus::default()
            }),
        })
    }

    fn claim(id: &str, addresses: &[(&str, &str)]) -> Claim {
        Claim {
            provider_id: Some(id.to_owned()),
            addresses: addresses
                .iter()
                .map(|(kind, address)| ((*kind).to_owned(), (*address).to_owned()))
                .collect(),
        }
    }

    fn find(claim: &Claim, nodes: &[Arc<Node>]) -> Result<Option<String>, Ambiguous> {
        let found = find_node(claim, |word| {
            let has = |node: &&Arc<Node>| words_of_node(node).iter().any(|known| known == word);
            nodes.iter().filter(has).cloned().collect()
        });
        found.map(|node| node.map(|node| node.name_any()))
    }

    #[test]
    fn the_provider_id_counts_before_addresses() {
        let nodes = [
            node("by-ip", "", &[("InternalIP", "10.0.0.1")]),
            node("by-id", "aws:///a/i-1", &[("InternalIP", "10.0.0.2")]),
        ];
        let internal = [("InternalIP", "10.0.0.1")];
        assert_eq!(find(&claim("aws:///a/i-1", &internal), &nodes).unwrap().unwrap(), "by-id");
        assert_eq!(find(&claim("", &internal), &nodes).unwrap().unwrap(), "by-ip");
        assert_eq!(find(&claim("aws:///a/i-2", &internal), &nodes).unwrap().unwrap(), "by-ip");
        assert_eq!(find(&claim("aws:///a/i-2", &[]), &nodes).unwrap(), None);
    }

    #[test]
    fn an_address_that_was_given_to_another_instance_does_not_count() {
        let nodes = [node("new", "aws:///a/i-2", &[("InternalIP", "10.0.0.1")])];
        assert_eq!(find(&claim("aws:///a/i-1", &[("InternalIP", "10.0.0.1")]), &nodes), Ok(None));
    }

    #[test]
    fn internal_addresses_count_first_and_kinds_do_not_mix() {
        let nodes = [
            node("name", "", &[("Hostname", "10.0.0.1"), ("Hostname", "n1")]),
            node("address", "", &[("InternalIP", "10.0.0.1")]),
        ];
        let both = claim("", &[("Hostname", "n1"), ("InternalIP", "10.0.0.1")]);
        assert_eq!(find(&both, &nodes).unwrap().unwrap(), "address");
        assert_eq!(find(&claim("", &[("Hostname", "n1")]), &nodes).unwrap().unwrap(), "name");
        assert_eq!(find(&claim("", &[("Moniker", "n1")]), &nodes), Ok(None));
    }

    #[test]
    fn two_nodes_with_one_id_are_an_error_that_names_them() {
        let nodes = [node("b", "aws:///a/i-1", &[]), node("a", "aws:///a/i-1", &[])];
        let error = find(&claim("aws:///a/i-1", &[]), &nodes).unwrap_err();
        assert_eq!(error.to_string(), "several Nodes have providerID=aws:///a/i-1: a, b");
    }

    #[test]
    fn both_sides_have_the_same_words() {
        let addresses = [("InternalIP", "10.0.0.1"), ("Hostname", "n1")];
        assert_eq!(
            words(&claim("aws:///a/i-1", &addresses)),
            words_of_node(&node("n", "aws:///a/i-1", &addresses))
        );
        assert!(words(&Claim::default()).is_empty());
    }
}
