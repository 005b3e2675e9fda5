//! VPCs, subnets with their addresses, security groups, DHCP options and zones.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use super::{error::ApiError, tags::Tags};

/// An Availability Zone.
#[derive(Clone, Debug)]
pub struct Zone {
    /// `us-east-1a`.
    pub name: String,
    /// `use1-az1`.
    pub id: String,
    /// availability-zone, local-zone or wavelength-zone.
    pub kind: String,
}

/// A virtual network.
#[derive(Clone, Debug)]
pub struct Vpc {
    /// `vpc-…`.
    pub id: String,
    /// Its addresses.
    pub cidr: Cidr,
    /// `dopt-…`.
    pub dhcp_options: String,
    /// The account's default.
    pub default: bool,
    /// Tags.
    pub tags: Tags,
}

/// What DHCP hands out.
#[derive(Clone, Debug)]
pub struct DhcpOptions {
    /// `dopt-…`.
    pub id: String,
    /// Such as `domain-name`: several names are in one value, separated by spaces.
    pub configurations: BTreeMap<String, Vec<String>>,
    /// Tags.
    pub tags: Tags,
}

/// A security group. Its rules are not simulated.
#[derive(Clone, Debug)]
pub struct SecurityGroup {
    /// `sg-…`.
    pub id: String,
    /// Its name, unique in the VPC.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// `vpc-…`.
    pub vpc: String,
    /// Tags.
    pub tags: Tags,
}

/// A subnet.
#[derive(Clone, Debug)]
pub struct Subnet {
    /// `subnet-…`.
    pub id: String,
    /// `vpc-…`.
    pub vpc: String,
    /// Zone name.
    pub zone: String,
    /// Zone identifier.
    pub zone_id: String,
    /// Its addresses.
    pub cidr: Cidr,
    /// Instances get a public address.
    pub public: bool,
    /// The default subnet of its zone.
    pub default: bool,
    /// Tags.
    pub tags: Tags,
    taken: BTreeSet<u32>,
    /// Where the search for a free address begins, so that addresses are not reused at once.
    next: u32,
}

/// AWS keeps the first four addresses of a subnet, and the last.
const KEPT_FIRST: u32 = 4;
const KEPT: u32 = 5;

impl Subnet {
    /// A subnet with all its addresses free.
    pub fn new(id: String, vpc: String, zone: &Zone, cidr: Cidr) -> Self {
        Self {
            id,
            vpc,
            zone: zone.name.clone(),
            zone_id: zone.id.clone(),
            cidr,
            public: false,
            default: false,
            tags: Tags::new(),
            taken: BTreeSet::new(),
            next: KEPT_FIRST,
        }
    }

    /// How many addresses are free.
    pub fn free(&self) -> u32 {
        let taken = u32::try_from(self.taken.len()).unwrap_or(u32::MAX);
        self.cidr.size().saturating_sub(KEPT).saturating_sub(taken)
    }

    /// Takes the next free address.
    pub fn take(&mut self) -> Option<Ipv4Addr> {
        if self.free() == 0 {
            return None;
        }
        let last = self.cidr.size() - 1;
        loop {
            let offset = self.next;
            self.next = if offset + 1 < last { offset + 1 } else { KEPT_FIRST };
            if self.taken.insert(offset) {
                return Some(self.cidr.at(offset));
            }
        }
    }

    /// Takes this very address.
    pub fn take_exactly(&mut self, address: Ipv4Addr) -> Result<(), ApiError> {
        let offset = self
            .cidr
            .offset(address)
            .filter(|offset| (KEPT_FIRST..self.cidr.size() - 1).contains(offset));
        let Some(offset) = offset else {
            return Err(ApiError::invalid(format!(
                "Address {address} does not fall within the subnet's address range"
            )));
        };
        if self.taken.insert(offset) {
            Ok(())
        } else {
            Err(ApiError::client("InvalidIPAddress.InUse", format!("Address {address} is in use.")))
        }
    }

    /// Gives an address back.
    pub fn give_back(&mut self, address: Ipv4Addr) {
        if let Some(offset) = self.cidr.offset(address) {
            self.taken.remove(&offset);
        }
    }
}

/// A block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    base: u32,
    prefix: u8,
}

impl Cidr {
    /// From `10.0.0.0/16`. EC2 allows /16 to /28.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let prefix: u8 = prefix.parse().ok().filter(|p| (8..=28).contains(p))?;
        let base = u32::from(address.parse::<Ipv4Addr>().ok()?);
        (base & (u32::MAX >> prefix) == 0).then_some(Self { base, prefix })
    }

    /// The block of this size that the address is in.
    pub(crate) fn of(address: Ipv4Addr, prefix: u8) -> Self {
        let prefix = prefix.clamp(8, 28);
        Self { base: u32::from(address) & !(u32::MAX >> prefix), prefix }
    }

    /// How many addresses there are.
    pub fn size(self) -> u32 {
        1 << (32 - self.prefix)
    }

    fn at(self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.base + offset)
    }

    fn offset(self, address: Ipv4Addr) -> Option<u32> {
        u32::from(address).checked_sub(self.base).filter(|offset| *offset < self.size())
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.base), self.prefix)
    }
}

/// The name that EC2 gives to an address inside a VPC.
pub fn private_dns(region: &str, address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    format!("ip-{a}-{b}-{c}-{d}.{}", private_domain(region))
}

/// The domain of private names.
pub fn private_domain(region: &str) -> String {
    if region == "us-east-1" {
        "ec2.internal".to_owned()
    } else {
        format!("{region}.compute.internal")
    }
}

/// The name that EC2 gives to a public address.
pub fn public_dns(region: &str, address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    if region == "us-east-1" {
        format!("ec2-{a}-{b}-{c}-{d}.compute-1.amazonaws.com")
    } else {
        format!("ec2-{a}-{b}-{c}-{d}.{region}.compute.amazonaws.com")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(cidr: &str) -> Subnet {
        let zone = Zone { name: "z".into(), id: "i".into(), kind: "availability-zone".into() };
        Subnet::new("s".into(), "v".into(), &zone, Cidr::parse(cidr).unwrap())
    }

    #[test]
    fn blocks() {
        assert_eq!(Cidr::parse("10.0.0.0/16").unwrap().size(), 65_536);
        assert_eq!(Cidr::parse("10.0.16.0/20").unwrap().to_string(), "10.0.16.0/20");
        for bad in ["10.0.0.1/16", "10.0.0.0/29", "10.0.0.0", "x/16", "10.0.0.0/4"] {
            assert!(Cidr::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn addresses_are_all_used_and_come_back() {
        let mut subnet = subnet("10.0.0.0/28");
        let all: Vec<_> = std::iter::from_fn(|| subnet.take()).map(|a| a.octets()[3]).collect();
        assert_eq!(all, (4..15).collect::<Vec<u8>>());
        assert_eq!(subnet.free(), 0);
        subnet.give_back(Ipv4Addr::new(10, 0, 0, 9));
        assert_eq!(subnet.take(), Some(Ipv4Addr::new(10, 0, 0, 9)));
        assert_eq!(subnet.take(), None);
    }

    #[test]
    fn an_address_can_be_chosen() {
        let mut subnet = subnet("10.0.0.0/28");
        assert!(subnet.take_exactly(Ipv4Addr::new(10, 0, 0, 4)).is_ok());
        assert_eq!(subnet.take(), Some(Ipv4Addr::new(10, 0, 0, 5)));
        let refused = |s: &mut Subnet, a| s.take_exactly(a).unwrap_err().code;
        assert_eq!(refused(&mut subnet, Ipv4Addr::new(10, 0, 0, 4)), "InvalidIPAddress.InUse");
        assert_eq!(refused(&mut subnet, Ipv4Addr::new(10, 0, 0, 3)), "InvalidParameterValue");
        assert_eq!(refused(&mut subnet, Ipv4Addr::new(10, 0, 0, 15)), "InvalidParameterValue");
    }
}
