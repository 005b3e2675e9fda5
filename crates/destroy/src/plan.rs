//! What goes, in which order, what is in the way, and what is left alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use fleetwright_cloud::{
    GANG_TAG, GroupState, Instance, InstanceState, Leftover, LeftoverKind, MACHINE_UID_TAG,
    PlacementGroup, Tag, tags::NAME_TAG,
};

use crate::Survey;

/// What we make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An instance.
    Instance,
    /// A disk.
    Volume,
    /// A dedicated host.
    Host,
    /// A placement group.
    Group,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Volume => "volume",
            Self::Host => "dedicated host",
            Self::Group => "placement group",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What comes next for something of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// It can be removed now.
    Ready,
    /// Its removal has begun.
    UnderWay,
    /// It can be removed when others are gone.
    Waits,
    /// It stays, for this reason.
    Blocked(String),
}

/// Something of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub kind: Kind,
    /// What it is removed by: an identifier, or the name of a group.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// More about it, for people.
    pub detail: String,
    /// What comes next.
    pub outlook: Outlook,
}

/// Something that stays, although it is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked<'a> {
    /// What.
    pub item: &'a Item,
    /// Why.
    pub why: &'a str,
}

/// Something of the cluster that is not ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Untouched {
    /// What it is, in the cloud's words.
    pub kind: String,
    /// The cloud's name of it.
    pub id: String,
    /// Its name for people.
    pub name: String,
}

/// What the cloud refused to remove, and in which words.
pub type Refusals = BTreeMap<String, String>;

/// What is to be done about a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Ours, in the order in which it goes.
    pub items: Vec<Item>,
    /// What is left alone.
    pub untouched: Vec<Untouched>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Terminate these instances.
    Terminate(Vec<String>),
    /// Remove these disks and hosts.
    Remove(Vec<Leftover>),
    /// Delete these groups.
    Delete(Vec<String>),
    /// Wait: it goes by itself.
    Wait,
    /// There is nothing more to do.
    Done,
}

/// Whether the tags say that we made something: the cluster's alone do not.
fn is_ours(tags: &BTreeMap<String, String>, cluster: &str) -> bool {
    is_owned(tags, cluster) && (tags.contains_key(MACHINE_UID_TAG) || tags.contains_key(GANG_TAG))
}

fn is_owned(tags: &BTreeMap<String, String>, cluster: &str) -> bool {
    let owned = Tag::owned_by(cluster);
    tags.get(&owned.key) == Some(&owned.value)
}

/// Groups carry no Machine's tag; ours are called in their tags what they are called.
fn is_our_group(group: &PlacementGroup, cluster: &str) -> bool {
    is_owned(&group.tags, cluster) && group.tags.get(NAME_TAG) == Some(&group.name)
}

fn name(tags: &BTreeMap<String, String>) -> String {
    tags.get(NAME_TAG).cloned().unwrap_or_default()
}

/// Plans the end of a cluster.
pub fn plan(survey: &Survey, refusals: &Refusals) -> Plan {
    let cluster = survey.cluster.as_str();
    let there = |instance: &&Instance| instance.state != InstanceState::Terminated;
    let mut items = Vec::new();
    let mut untouched = Vec::new();
    // Those of ours that go, or would if they could.
    let mut ours: BTreeMap<&str, bool> = BTreeMap::new();
    for instance in survey.instances.iter().filter(there) {
        if is_ours(&instance.tags, cluster) {
            let item = instance_item(instance, refusals);
            ours.insert(&instance.id, !matches!(item.outlook, Outlook::Blocked(_)));
            items.push(item);
        } else {
            untouched.push(Untouched {
                kind: Kind::Instance.to_string(),
                id: instance.id.clone(),
                name: name(&instance.tags),
            });
        }
    }
    let terminated: BTreeSet<&str> = survey
        .instances
        .iter()
        .filter(|instance| !there(instance))
        .map(|instance| instance.id.as_str())
        .collect();
    for kind in [LeftoverKind::Volume, LeftoverKind::Host] {
        for leftover in survey.leftovers.iter().filter(|it| it.kind == kind) {
            if is_ours(&leftover.tags, cluster) {
                items.push(leftover_item(leftover, &ours, &terminated, refusals));
            } else {
                untouched.push(Untouched {
                    kind: leftover_kind(leftover).to_string(),
                    id: leftover.id.clone(),
                    name: name(&leftover.tags),
                });
            }
        }
    }
    for group in survey.groups.iter().filter(|group| group.state != GroupState::Deleted) {
        if is_our_group(group, cluster) {
            items.push(group_item(group, &survey.members, &ours, &terminated, refusals));
        } else {
            untouched.push(Untouched {
                kind: Kind::Group.to_string(),
                id: group.name.clone(),
                name: name(&group.tags),
            });
        }
    }
    // What carries our tags beside all that was made with an instance and ends with it.
    let others = survey.others.iter().filter(|other| !is_ours(&other.tags, cluster));
    untouched.extend(others.map(|other| Untouched {
        kind: other.kind.replace('-', " "),
        id: other.id.clone(),
        name: name(&other.tags),
    }));
    untouched.sort();
    Plan { items, untouched }
}

fn instance_item(instance: &Instance, refusals: &Refusals) -> Item {
    let outlook = match (instance.state, refusals.get(&instance.id)) {
        (InstanceState::ShuttingDown, _) => Outlook::UnderWay,
        (_, Some(why)) => Outlook::Blocked(why.clone()),
        _ => Outlook::Ready,
    };
    let Instance { state, instance_type, zone, .. } = instance;
    Item {
        kind: Kind::Instance,
        id: instance.id.clone(),
        name: name(&instance.tags),
        detail: format!("{state}, {instance_type} in {zone}"),
        outlook,
    }
}

fn leftover_kind(leftover: &Leftover) -> Kind {
    match leftover.kind {
        LeftoverKind::Volume => Kind::Volume,
        LeftoverKind::Host => Kind::Host,
    }
}

fn leftover_item(
    leftover: &Leftover,
    ours: &BTreeMap<&str, bool>,
    terminated: &BTreeSet<&str>,
    refusals: &Refusals,
) -> Item {
    let users = leftover.users.iter().map(String::as_str);
    let users: Vec<&str> = users.filter(|user| !terminated.contains(user)).collect();
    let (detail, outlook) = match (refusals.get(&leftover.id), users.as_slice()) {
        (Some(why), _) => (String::new(), Outlook::Blocked(why.clone())),
        (None, []) if leftover.in_use => (String::new(), Outlook::UnderWay),
        (None, []) => ("used by nobody".to_owned(), Outlook::Ready),
        (None, users) => {
            let detail = format!("used by {}", users.join(", "));
            let outlook = held(users, ours).map_or(Outlook::Waits, Outlook::Blocked);
            (detail, outlook)
        }
    };
    Item {
        kind: leftover_kind(leftover),
        id: leftover.id.clone(),
        name: name(&leftover.tags),
        detail,
        outlook,
    }
}

fn group_item(
    group: &PlacementGroup,
    members: &[Instance],
    ours: &BTreeMap<&str, bool>,
    terminated: &BTreeSet<&str>,
    refusals: &Refusals,
) -> Item {
    let members: Vec<&str> = members
        .iter()
        .filter(|member| member.group.as_deref() == Some(&group.name))
        .filter(|member| member.state != InstanceState::Terminated)
        .map(|member| member.id.as_str())
        .filter(|id| !terminated.contains(id))
        .collect();
    let outlook = match (refusals.get(&group.name), members.as_slice()) {
        (_, []) if group.state == GroupState::Deleting => Outlook::UnderWay,
        (Some(why), _) => Outlook::Blocked(why.clone()),
        (None, []) => Outlook::Ready,
        (None, members) => held(members, ours).map_or(Outlook::Waits, Outlook::Blocked),
    };
    let count = members.len();
    Item {
        kind: Kind::Group,
        id: group.name.clone(),
        name: group.id.clone(),
        detail: format!(
            "{}, {count} instance{}",
            group.strategy.as_str(),
            if count == 1 { "" } else { "s" }
        ),
        outlook,
    }
}

/// Why something stays that these instances use; none when all of them go.
fn held(users: &[&str], ours: &BTreeMap<&str, bool>) -> Option<String> {
    let foreign: Vec<&str> =
        users.iter().filter(|user| !ours.contains_key(**user)).copied().collect();
    if !foreign.is_empty() {
        return Some(format!(
            "used by {}, which Fleetwright did not make for this cluster",
            foreign.join(", ")
        ));
    }
    let staying: Vec<&str> =
        users.iter().filter(|user| ours.get(**user) == Some(&false)).copied().collect();
    (!staying.is_empty()).then(|| format!("used by {}, which stays", staying.join(", ")))
}

impl Plan {
    /// What stays although it is ours.
    pub fn blocked(&self) -> Vec<Blocked<'_>> {
        let blocked = self.items.iter().filter_map(|item| match &item.outlook {
            Outlook::Blocked(why) => Some(Blocked { item, why }),
            _ => None,
        });
        blocked.collect()
    }

    /// What goes, in its order.
    pub fn going(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| !matches!(item.outlook, Outlook::Blocked(_)))
    }

    /// The one thing to do now: instances, until they are gone; what they used; groups.
    pub fn next(&self) -> Step {
        let ready = |kinds: &'static [Kind]| {
            self.items
                .iter()
                .filter(|item| item.outlook == Outlook::Ready)
                .filter(|item| kinds.contains(&item.kind))
        };
        let ids = |kinds| ready(kinds).map(|item| item.id.clone()).collect::<Vec<_>>();
        let instances = ids(&[Kind::Instance]);
        if !instances.is_empty() {
            return Step::Terminate(instances);
        }
        let ending = |item: &Item| item.kind == Kind::Instance;
        if self.going().any(ending) {
            return Step::Wait;
        }
        let leftovers: Vec<Leftover> = ready(&[Kind::Volume, Kind::Host]).map(removable).collect();
        if !leftovers.is_empty() {
            return Step::Remove(leftovers);
        }
        let groups = ids(&[Kind::Group]);
        if !groups.is_empty() {
            return Step::Delete(groups);
        }
        if self.going().next().is_some() { Step::Wait } else { Step::Done }
    }
}

fn removable(item: &Item) -> Leftover {
    Leftover {
        kind: if item.kind == Kind::Host { LeftoverKind::Host } else { LeftoverKind::Volume },
        id: item.id.clone(),
        in_use: false,
        users: Vec::new(),
        tags: BTreeMap::new(),
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
