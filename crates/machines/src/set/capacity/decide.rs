//! Which annotations tell an autoscaler what a Machine of a set would be.
//!
//! Two families of them are in use: `machine.openshift.io/…`, which are always ours, and
//! `capacity.cluster-autoscaler.kubernetes.io/…`, in which users say what they know better. So that
//! a value of ours follows the template and a value of theirs stays, what we wrote is remembered in
//! an annotation of our own.

use std::collections::BTreeMap;

use fleetwright_api::names::{annotation, label};
use fleetwright_cloud::InstanceType;
use fleetwright_lifecycle::autoscaler;
use k8s_openapi::api::core::v1::Taint;

/// Label of Nodes: their architecture.
const ARCHITECTURE: &str = "kubernetes.io/arch";
/// Label of Nodes: their zone.
const ZONE: &str = "topology.kubernetes.io/zone";
/// Label of Nodes: their region.
const REGION: &str = "topology.kubernetes.io/region";

/// What the Nodes of a set will be.
#[derive(Debug)]
pub struct Nature<'a> {
    /// The type of the instances.
    pub instance_type: &'a InstanceType,
    /// Whether the cloud may take them back.
    pub interruptible: bool,
    /// Their region; empty if not known.
    pub region: &'a str,
    /// Their zone; empty if not known.
    pub zone: &'a str,
    /// Labels that Machines hand to their Nodes.
    pub labels: &'a BTreeMap<String, String>,
    /// Taints that Machines hand to their Nodes.
    pub taints: &'a [Taint],
}

type Labels<'a> = BTreeMap<&'a str, &'a str>;

/// The annotations of a set whose Machines are of this type. Labels that are known otherwise stay,
/// and win.
pub fn annotations(
    instance_type: &InstanceType,
    interruptible: bool,
    labels: &str,
) -> BTreeMap<&'static str, String> {
    let mut capacity = Labels::from([(ARCHITECTURE, instance_type.architecture.as_str())]);
    if interruptible {
        capacity.insert(label::INTERRUPTIBLE, "");
    }
    capacity.extend(autoscaler::labels(labels));
    BTreeMap::from([
        (annotation::VCPU, instance_type.vcpus.to_string()),
        (annotation::MEMORY_MB, instance_type.memory_mib.to_string()),
        (annotation::GPU, instance_type.gpus.to_string()),
        (annotation::CAPACITY_LABELS, render(&capacity)),
    ])
}

/// What must change in the annotations of a set; nothing in place of a value removes it.
pub fn changes(
    nature: &Nature<'_>,
    present: &BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let written = Written::read(present.get(annotation::CAPACITY).map_or("", String::as_str));
    let known = present.get(annotation::CAPACITY_LABELS).map_or("", String::as_str);
    let labels = render(&nature.labels(&written.theirs(known)));
    let mut wanted: BTreeMap<&str, Option<String>> =
        annotations(nature.instance_type, nature.interruptible, &labels)
            .into_iter()
            .map(|(key, value)| (key, Some(value)))
            .collect();
    // As if the user had said nothing: what is ours among the labels.
    let own_labels = render(&nature.labels(&Labels::new()));
    let mut own = annotations(nature.instance_type, nature.interruptible, &own_labels);
    let mut ours = Written(BTreeMap::from([(
        annotation::CAPACITY_LABELS.to_owned(),
        own.remove(annotation::CAPACITY_LABELS).unwrap_or_default(),
    )]));
    for (key, value) in nature.amounts() {
        let now = present.get(key);
        let may_change = now.is_none() || now == written.0.get(key);
        if may_change {
            if let Some(value) = &value {
                ours.0.insert(key.to_owned(), value.clone());
            }
            wanted.insert(key, value);
        }
    }
    wanted.insert(annotation::CAPACITY, Some(ours.render()));
    wanted
        .into_iter()
        .filter(|(key, value)| present.get(*key) != value.as_ref())
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

impl Nature<'_> {
    /// The labels of Nodes beside those that follow from the type: the template's, their place, and
    /// what users add.
    fn labels<'a>(&'a self, theirs: &Labels<'a>) -> Labels<'a> {
        let place = [(REGION, self.region), (ZONE, self.zone)];
        let mut labels: Labels<'a> = place.into_iter().filter(|(_, at)| !at.is_empty()).collect();
        labels.extend(self.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        labels.extend(theirs);
        labels
    }

    /// The other annotations that users may overrule.
    fn amounts(&self) -> [(&'static str, Option<String>); 5] {
        let of = self.instance_type;
        let gpus = of.gpu_resource.as_ref().filter(|_| of.gpus > 0);
        let taints: Vec<String> = self.taints.iter().map(taint).collect();
        [
            (annotation::CAPACITY_CPU, Some(of.vcpus.to_string())),
            (annotation::CAPACITY_MEMORY, Some(format!("{}Mi", of.memory_mib))),
            (annotation::CAPACITY_GPU_COUNT, gpus.map(|_| of.gpus.to_string())),
            (annotation::CAPACITY_GPU_TYPE, gpus.cloned()),
            (annotation::CAPACITY_TAINTS, Some(taints.join(",")).filter(|all| !all.is_empty())),
        ]
    }
}

fn taint(taint: &Taint) -> String {
    format!("{}={}:{}", taint.key, taint.value.as_deref().unwrap_or_default(), taint.effect)
}

/// What we wrote the last time, by annotation.
struct Written(BTreeMap<String, String>);

impl Written {
    /// What cannot be read was not written by us.
    fn read(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    fn render(&self) -> String {
        serde_json::json!(self.0).to_string()
    }

    /// Labels that others have put down.
    fn theirs<'a>(&self, labels: &'a str) -> Labels<'a> {
        let ours = self.0.get(annotation::CAPACITY_LABELS).map_or("", String::as_str);
        let ours = autoscaler::labels(ours);
        let mut labels = autoscaler::labels(labels);
        labels.retain(|key, value| ours.get(key) != Some(value));
        labels
    }
}

fn render(labels: &Labels<'_>) -> String {
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance_type() -> InstanceType {
        InstanceType {
            name: "p3.2xlarge".to_owned(),
            vcpus: 8,
            memory_mib: 62464,
            gpus: 1,
            gpu_resource: Some("nvidia.com/gpu".to_owned()),
            architecture: "amd64".to_owned(),
            strategies: std::collections::BTreeSet::new(),
        }
    }

    #[test]
    fn a_type_in_the_words_of_the_autoscaler() {
        let found = annotations(&instance_type(), false, "");
        let wanted = [
            ("machine.openshift.io/vCPU", "8"),
            ("machine.openshift.io/memoryMb", "62464"),
            ("machine.openshift.io/GPU", "1"),
            ("capacity.cluster-autoscaler.kubernetes.io/labels", "kubernetes.io/arch=amd64"),
        ];
        assert_eq!(found, wanted.map(|(key, value)| (key, value.to_owned())).into());
    }

    #[test]
    fn labels_of_the_user_stay_and_win_and_spot_is_told() {
        let labels = |spot, known: &str| {
            annotations(&instance_type(), spot, known)[annotation::CAPACITY_LABELS].clone()
        };
        assert_eq!(
            labels(false, "team=hpc,kubernetes.io/arch=arm64,bad,a=b=c,empty="),
            "empty=,kubernetes.io/arch=arm64,team=hpc"
        );
        let spot = labels(true, "");
        assert_eq!(spot, "kubernetes.io/arch=amd64,machine.openshift.io/interruptible-instance=");
        assert_eq!(labels(true, &spot), spot, "the same again");
    }

    /// A set, seen by the rule again and again.
    #[derive(Default)]
    struct Set(BTreeMap<String, String>);

    impl Set {
        fn take(&mut self, nature: &Nature<'_>) {
            for (key, value) in changes(nature, &self.0) {
                match value {
                    Some(value) => self.0.insert(key, value),
                    None => self.0.remove(&key),
                };
            }
            assert_eq!(changes(nature, &self.0), BTreeMap::new(), "nothing is left to do");
        }

        fn set(&mut self, name: &str, value: &str) {
            self.0.insert(key(name), value.to_owned());
        }

        fn get(&self, name: &str) -> Option<&str> {
            self.0.get(&key(name)).map(String::as_str)
        }
    }

    fn key(name: &str) -> String {
        format!("capacity.cluster-autoscaler.kubernetes.io/{name}")
    }

    #[test]
    fn what_is_ours_follows_the_template_and_what_is_theirs_stays() {
        let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
        let taints = [Taint {
            key: "gpu".to_owned(),
            value: None,
            effect: "NoSchedule".to_owned(),
            time_added: None,
        }];
        let gpu = instance_type();
        let small = InstanceType {
            vcpus: 2,
            memory_mib: 8192,
            gpus: 0,
            gpu_resource: None,
            architecture: "arm64".to_owned(),
            ..instance_type()
        };
        let nature = |instance_type, interruptible| Nature {
            instance_type,
            interruptible,
            region: "us-east-1",
            zone: "us-east-1a",
            labels: &labels,
            taints: &taints,
        };
        let mut set = Set::default();
        set.take(&nature(&gpu, true));
        assert_eq!(set.get("cpu"), Some("8"));
        assert_eq!(set.get("memory"), Some("62464Mi"));
        assert_eq!(set.get("gpu-count"), Some("1"));
        assert_eq!(set.get("gpu-type"), Some("nvidia.com/gpu"));
        assert_eq!(set.get("taints"), Some("gpu=:NoSchedule"));
        assert_eq!(
            set.get("labels"),
            Some(
                "kubernetes.io/arch=amd64,machine.openshift.io/interruptible-instance=,team=a,\
                 topology.kubernetes.io/region=us-east-1,topology.kubernetes.io/zone=us-east-1a"
            )
        );

        // A user knows better how much is left of the memory, and what else the Nodes will carry.
        set.set("memory", "60Gi");
        set.set("labels", &format!("{},mine=1", set.get("labels").unwrap()));
        let none = BTreeMap::new();
        set.take(&Nature { labels: &none, taints: &[], ..nature(&small, false) });
        assert_eq!(set.get("cpu"), Some("2"));
        assert_eq!(set.get("memory"), Some("60Gi"));
        assert_eq!(set.get("gpu-count"), None);
        assert_eq!(set.get("gpu-type"), None);
        assert_eq!(set.get("taints"), None);
        assert_eq!(
            set.get("labels"),
            Some(
                "kubernetes.io/arch=arm64,mine=1,topology.kubernetes.io/region=us-east-1,\
                 topology.kubernetes.io/zone=us-east-1a"
            )
        );
    }

    #[test]
    fn a_record_that_makes_no_sense_counts_as_none() {
        let (labels, gpu) = (BTreeMap::new(), instance_type());
        let nature = Nature {
            instance_type: &gpu,
            interruptible: false,
            region: "",
            zone: "",
            labels: &labels,
            taints: &[],
        };
        let mut set = Set::default();
        set.0.insert(annotation::CAPACITY.to_owned(), "[nonsense".to_owned());
        set.set("cpu", "7910m");
        set.take(&nature);
        assert_eq!(set.get("cpu"), Some("7910m"), "not known to be ours");
        assert_eq!(set.get("memory"), Some("62464Mi"));
    }
}
