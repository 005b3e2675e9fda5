//! A region as an installer leaves it.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_clock::{Clock, Random};

use super::{
    model::{
        Region,
        balancers::{ClassicBalancer, LoadBalancer, TargetGroup},
        catalog::{CapacityReservation, Image, InstanceProfile, KeyPair},
        fresh,
        network::{Cidr, DhcpOptions, SecurityGroup, Subnet, Vpc, Zone, private_domain},
        settings::Settings,
        tags::Tags,
    },
    service::Aws,
    wire::sign::{Key, Keys},
};

/// What an installer made: for tests, and for manifests that refer to it.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The cluster's infrastructure name, which most names begin with.
    pub infra: String,
    /// `vpc-…`.
    pub vpc: String,
    /// Private subnets by zone.
    pub subnets: BTreeMap<String, String>,
    /// `sg-…` of the workers.
    pub worker_group: String,
    /// Images by architecture.
    pub images: BTreeMap<String, String>,
    /// Key pair.
    pub key_name: String,
    /// Instance profile of the workers.
    pub worker_profile: String,
    /// Access key of the machine controllers.
    pub access_key: String,
    /// Its secret half.
    pub secret_key: String,
}

/// Chooses what the installer is told.
#[derive(Clone, Debug)]
pub struct Installer {
    infra: String,
    settings: Settings,
    random: Random,
    domain: Option<String>,
    edge_zones: Vec<(String, String)>,
}

/// Zones of every simulated region.
const ZONES: [&str; 3] = ["a", "b", "c"];
/// The account that publishes the images of the operating system.
const IMAGE_OWNER: &str = "531415883065";

impl Installer {
    /// An installer for a cluster of this infrastructure name.
    pub fn new(infra: &str, random: Random) -> Self {
        Self {
            infra: infra.to_owned(),
            settings: Settings::default(),
            random,
            domain: None,
            edge_zones: Vec::new(),
        }
    }

    /// With these settings.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// With a domain of the user's in the DHCP options.
    #[must_use]
    pub fn domain(mut self, domain: &str) -> Self {
        self.domain = Some(domain.to_owned());
        self
    }

    /// With a zone at the edge, such as a `local-zone` or a `wavelength-zone`, and a private subnet
    /// in it.
    #[must_use]
    pub fn edge_zone(mut self, name: &str, kind: &str) -> Self {
        self.edge_zones.push((name.to_owned(), kind.to_owned()));
        self
    }

    /// The cloud, and what is in it.
    pub fn install(self, clock: Clock) -> (Aws, Installed) {
        let now = clock.now();
        let mut region = Region::new(self.settings.clone(), self.random.clone());
        let vpc = self.network(&mut region);
        let subnets = self.subnets(&mut region, &vpc);
        let worker_group = self.security_groups(&mut region, &vpc);
        let images = self.images(&mut region);
        let (key_name, worker_profile) = self.identity(&mut region);
        self.balancers(&mut region, &vpc, &subnets, now);
        let (access_key, secret_key, keys) = self.keys();
        let installed = Installed {
            infra: self.infra.clone(),
            vpc,
            subnets,
            worker_group,
            images,
            key_name,
            worker_profile,
            access_key,
            secret_key,
        };
        (Aws::new(region, keys, clock), installed)
    }

    fn id(&self, prefix: &str) -> String {
        fresh(&self.random, prefix)
    }

    /// The tags that an installer puts on what it makes.
    fn tags(&self, name: &str) -> Tags {
        [
            ("Name".to_owned(), name.to_owned()),
            (format!("kubernetes.io/cluster/{}", self.infra), "owned".to_owned()),
        ]
        .into()
    }

    fn network(&self, region: &mut Region) -> String {
        let short = short_region(&self.settings.region);
        for (number, letter) in (1..).zip(ZONES) {
            region.zones.push(Zone {
                name: format!("{}{letter}", self.settings.region),
                id: format!("{short}-az{number}"),
                kind: "availability-zone".to_owned(),
            });
        }
        for (number, (name, kind)) in (1..).zip(&self.edge_zones) {
            let (name, kind) = (name.clone(), kind.clone());
            region.zones.push(Zone { name, id: format!("{short}-edge{number}"), kind });
        }
        let domain = self.domain.clone().unwrap_or_else(|| private_domain(&self.settings.region));
        let options = DhcpOptions {
            id: self.id("dopt"),
            configurations: [
                ("domain-name".to_owned(), vec![domain]),
                ("domain-name-servers".to_owned(), vec!["AmazonProvidedDNS".to_owned()]),
            ]
            .into(),
            tags: Tags::new(),
        };
        let vpc = Vpc {
            id: self.id("vpc"),
            cidr: cidr([10, 0, 0, 0], 16),
            dhcp_options: options.id.clone(),
            default: false,
            tags: self.tags(&format!("{}-vpc", self.infra)),
        };
        region.dhcp_options.insert(options.id.clone(), options);
        let id = vpc.id.clone();
        region.vpcs.insert(vpc.id.clone(), vpc);
        id
    }

    /// In every zone a private and a public subnet, and a second private one: newer installers
    /// call theirs `…-subnet-private-…`, older ones `…-private-…`, and users' manifests say either.
    fn subnets(&self, region: &mut Region, vpc: &str) -> BTreeMap<String, String> {
        let mut private = BTreeMap::new();
        let (zones, edge) = region.zones.split_at(ZONES.len());
        let (zones, edge) = (zones.to_vec(), edge.to_vec());
        for (number, zone) in (252u8..=255).zip(edge) {
            let block = cidr([10, 0, number, 0], 24);
            let mut subnet = Subnet::new(self.id("subnet"), vpc.to_owned(), &zone, block);
            subnet.tags = self.tags(&format!("{}-subnet-private-{}", self.infra, zone.name));
            private.insert(zone.name.clone(), subnet.id.clone());
            region.subnets.insert(subnet.id.clone(), subnet);
        }
        for (number, zone) in (0u8..).zip(zones) {
            let infra = &self.infra;
            let blocks = [
                (format!("{infra}-subnet-private-{}", zone.name), number * 64, 18, false),
                (format!("{infra}-private-{}", zone.name), 192 + number * 16, 20, false),
                (format!("{infra}-subnet-public-{}", zone.name), 240 + number * 4, 22, true),
            ];
            for (name, third, prefix, public) in blocks {
                let newer = name.contains("-subnet-private-");
                let block = cidr([10, 0, third, 0], prefix);
                let mut subnet = Subnet::new(self.id("subnet"), vpc.to_owned(), &zone, block);
                subnet.public = public;
                subnet.tags = self.tags(&name);
                let role = if public {
                    "kubernetes.io/role/elb"
                } else {
                    "kubernetes.io/role/internal-elb"
                };
                subnet.tags.insert(role.to_owned(), "1".to_owned());
                if newer {
                    private.insert(zone.name.clone(), subnet.id.clone());
                }
                region.subnets.insert(subnet.id.clone(), subnet);
            }
        }
        private
    }

    fn security_groups(&self, region: &mut Region, vpc: &str) -> String {
        let infra = &self.infra;
        let named = [
            (format!("{infra}-worker-sg"), "worker security group"),
            (format!("{infra}-master-sg"), "control plane security group"),
            (format!("{infra}-node"), "Kubernetes cluster node"),
            (format!("{infra}-controlplane"), "Kubernetes cluster control plane"),
            (format!("{infra}-lb"), "Kubernetes cluster load balancer"),
            ("default".to_owned(), "default VPC security group"),
        ];
        let mut worker = String::new();
        for (name, description) in named {
            let default = name == "default";
            let group = SecurityGroup {
                id: self.id("sg"),
                tags: if default { Tags::new() } else { self.tags(&name) },
                name,
                description: description.to_owned(),
                vpc: vpc.to_owned(),
            };
            if group.name.ends_with("-node") {
                worker.clone_from(&group.id);
            }
            region.security_groups.insert(group.id.clone(), group);
        }
        worker
    }

    fn images(&self, region: &mut Region) -> BTreeMap<String, String> {
        let mut newest = BTreeMap::new();
        // The same in every simulated account, as a published image is: manifests name it.
        for (build, architecture, id) in [
            ("202601010000-0", "x86_64", "ami-0f1ee700000000012"),
            ("202610010000-0", "x86_64", "ami-0f1ee70000000001a"),
            ("202610010000-0", "arm64", "ami-0f1ee70000000002a"),
        ] {
            let image = Image {
                id: id.to_owned(),
                name: format!("rhcos-{build}-{architecture}"),
                owner: IMAGE_OWNER.to_owned(),
                architecture: architecture.to_owned(),
                created: format!("{}-{}-01T00:00:00.000Z", &build[..4], &build[4..6]),
                state: "available".to_owned(),
                public: true,
                root_device: "/dev/xvda".to_owned(),
                snapshot: self.id("snap"),
                size_gib: 16,
                tags: Tags::new(),
            };
            newest.insert(architecture.to_owned(), image.id.clone());
            region.images.insert(image.id.clone(), image);
        }
        newest
    }

    fn identity(&self, region: &mut Region) -> (String, String) {
        let key = KeyPair {
            id: self.id("key"),
            name: format!("{}-key", self.infra),
            fingerprint: "1f:51:ae:28:bf:89:e9:d8:1f:25:5d:37:2d:7d:b8:ca:9f:f5:f1:6f".to_owned(),
            tags: Tags::new(),
        };
        let key_name = key.name.clone();
        region.keys.insert(key.name.clone(), key);
        for role in ["worker", "master"] {
            let name = format!("{}-{role}-profile", self.infra);
            let id = format!("AIPA{}", self.random.name_suffix(17).to_uppercase());
            region.profiles.insert(name.clone(), InstanceProfile { id, name });
        }
        (key_name, format!("{}-worker-profile", self.infra))
    }

    fn balancers(
        &self,
        region: &mut Region,
        vpc: &str,
        subnets: &BTreeMap<String, String>,
        now: jiff::Timestamp,
    ) {
        let settings = &self.settings;
        let arn = |rest: String| {
            format!("arn:aws:elasticloadbalancing:{}:{}:{rest}", settings.region, settings.account)
        };
        let hash = || format!("{:016x}", self.random.u64());
        for (suffix, scheme, ports) in [
            ("int", "internal", vec![("aint", 6443), ("sint", 22_623)]),
            ("ext", "internet-facing", vec![("aext", 6443)]),
        ] {
            let name = format!("{}-{suffix}", self.infra);
            let balancer = LoadBalancer {
                arn: arn(format!("loadbalancer/net/{name}/{}", hash())),
                name: name.clone(),
                kind: "network".to_owned(),
                scheme: scheme.to_owned(),
                vpc: vpc.to_owned(),
                subnets: subnets.iter().map(|(z, s)| (z.clone(), s.clone())).collect(),
                created: now,
                tags: self.tags(&name),
            };
            for (short, port) in ports {
                let name = format!("{}-{short}", self.infra);
                let group = TargetGroup {
                    arn: arn(format!("targetgroup/{name}/{}", hash())),
                    name,
                    target_type: "ip".to_owned(),
                    protocol: "TCP".to_owned(),
                    port,
                    vpc: vpc.to_owned(),
                    balancers: vec![balancer.arn.clone()],
                    targets: BTreeMap::new(),
                };
                region.target_groups.insert(group.arn.clone(), group);
            }
            region.balancers.insert(name, balancer);
        }
        let name = format!("{}-classic", self.infra);
        let classic = ClassicBalancer {
            dns_name: format!("{name}.{}.elb.amazonaws.com", settings.region),
            vpc: vpc.to_owned(),
            zones: subnets.keys().cloned().collect(),
            instances: BTreeSet::new(),
            created: now,
            name: name.clone(),
        };
        region.classic.insert(name, classic);
    }

    fn keys(&self) -> (String, String, Keys) {
        let id = format!("AKIA{}", self.random.name_suffix(16).to_uppercase());
        let secret = self.random.name_suffix(40);
        let mut keys = Keys::default();
        keys.add(
            id.clone(),
            Key {
                secret: secret.clone(),
                session_token: None,
                expires: None,
                arn: format!(
                    "arn:aws:iam::{}:user/{}-machine-api",
                    self.settings.account, self.infra
                ),
                denied: BTreeSet::new(),
            },
        );
        (id, secret, keys)
    }
}

impl Region {
    /// Sets capacity aside, as CreateCapacityReservation or the purchase of a Capacity Block
    /// does: its identifier.
    pub fn reserve(&mut self, zone: &str, instance_type: &str, total: u32, block: bool) -> String {
        let id = fresh(&self.random, "cr");
        let reservation = CapacityReservation {
            id: id.clone(),
            zone: zone.to_owned(),
            instance_type: instance_type.to_owned(),
            total,
            used: 0,
            block,
        };
        self.reservations.insert(id.clone(), reservation);
        id
    }

    /// A type is not offered in a zone.
    pub fn withdraw_type(&mut self, zone: &str, instance_type: &str) {
        self.not_offered.insert((zone.to_owned(), instance_type.to_owned()));
    }
}

/// `use1` of `us-east-1`.
fn short_region(region: &str) -> String {
    let mut parts = region.split('-');
    let area = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.chars().next().unwrap_or_default());
    format!("{area}{}", rest.collect::<String>())
}

/// A block of the plan above, which is right by construction.
fn cidr([a, b, c, d]: [u8; 4], prefix: u8) -> Cidr {
    Cidr::of(std::net::Ipv4Addr::new(a, b, c, d), prefix)
}
