//! Tags that say whose a resource is.

use std::collections::{BTreeMap, BTreeSet};

use crate::Tag;

/// Before the name of the cluster in the tag that says whose a resource is.
pub const CLUSTER_TAG_PREFIX: &str = "kubernetes.io/cluster/";
/// The value of that tag on what goes away with the cluster.
pub const OWNED: &str = "owned";
/// The tag that consoles show as a name.
pub const NAME_TAG: &str = "Name";

impl Tag {
    /// A tag.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.into() }
    }

    /// Says that a resource belongs to a cluster.
    pub fn owned_by(cluster: &str) -> Self {
        Self::new(format!("{CLUSTER_TAG_PREFIX}{cluster}"), OWNED)
    }

    /// Its name in consoles.
    pub fn name(name: &str) -> Self {
        Self::new(NAME_TAG, name)
    }
}

/// The tags of a cluster's resource: those of its spec, those of the cluster, and whose it is.
/// The first value of a key counts; users cannot set the keys that ownership rests on.
pub fn resource_tags<'a>(
    spec: impl IntoIterator<Item = &'a Tag>,
    cluster_tags: impl IntoIterator<Item = &'a Tag>,
    cluster: &str,
) -> Vec<Tag> {
    let users = spec.into_iter().chain(cluster_tags);
    let users = users.filter(|tag| !is_reserved(&tag.key)).cloned();
    without_repetitions(users.chain([Tag::owned_by(cluster)]))
}

/// Whether a key is not for users.
pub fn is_reserved(key: &str) -> bool {
    key == NAME_TAG || key.starts_with(CLUSTER_TAG_PREFIX)
}

/// The first tag of each key.
pub fn without_repetitions(tags: impl IntoIterator<Item = Tag>) -> Vec<Tag> {
    let mut keys = BTreeSet::new();
    tags.into_iter().filter(|tag| keys.insert(tag.key.clone())).collect()
}

/// The tags that a resource lacks or has with another value.
pub fn missing_tags(have: &BTreeMap<String, String>, wanted: &[Tag]) -> Vec<Tag> {
    wanted.iter().filter(|tag| have.get(&tag.key) != Some(&tag.value)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_tags_come_first_and_do_not_touch_ownership() {
        let spec = [Tag::new("a", "1"), Tag::name("bad"), Tag::owned_by("other")];
        let cluster = [Tag::new("a", "2"), Tag::new("b", "2")];
        let tags = resource_tags(&spec, &cluster, "c");
        let expected =
            [Tag::new("a", "1"), Tag::new("b", "2"), Tag::new("kubernetes.io/cluster/c", "owned")];
        assert_eq!(tags, expected);
    }

    #[test]
    fn missing_and_wrong() {
        let have = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        let wanted = [Tag::new("a", "1"), Tag::new("a", "2"), Tag::new("b", "")];
        assert_eq!(missing_tags(&have, &wanted), wanted[1..]);
    }
}
