//! The instance types on offer.

use std::sync::LazyLock;

use super::groups::Strategy;

/// What EC2 says of an instance type.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceType {
    /// Its name, such as `m5.large`.
    pub name: &'static str,
    /// Default vCPUs.
    pub vcpus: u32,
    /// Default cores.
    pub cores: u32,
    /// Memory.
    pub memory_mib: u64,
    /// Architectures it boots.
    pub architectures: Vec<&'static str>,
    /// Placement strategies it supports.
    pub strategies: Vec<Strategy>,
    /// on-demand, spot, capacity-block.
    pub usage_classes: Vec<&'static str>,
    /// Most network interfaces.
    pub interfaces: u32,
    /// IPv4 addresses per interface.
    pub addresses_per_interface: u32,
    /// Most EFA interfaces; 0 if it has none.
    pub efa_interfaces: u32,
    /// GPUs, if any.
    pub gpu: Option<Gpu>,
    /// Who makes the processor.
    pub manufacturer: &'static str,
    /// Network performance in Amazon's words.
    pub network: &'static str,
    /// Approximate on-demand price in millionths of a dollar per hour.
    pub price_micros: u64,
    /// Further properties: burstable, metal, current, hosts, xen, disks.
    properties: Vec<&'static str>,
}

/// The GPUs of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// How many.
    pub count: u32,
    /// Whose.
    pub manufacturer: &'static str,
    /// Which.
    pub name: &'static str,
    /// Memory of each.
    pub memory_mib: u32,
}

impl InstanceType {
    /// Burstable performance.
    pub fn burstable(&self) -> bool {
        self.has("burstable")
    }

    /// No hypervisor.
    pub fn metal(&self) -> bool {
        self.has("metal")
    }

    /// Of the current generation.
    pub fn current(&self) -> bool {
        self.has("current")
    }

    /// Can run on Dedicated Hosts.
    pub fn dedicated_hosts(&self) -> bool {
        self.has("hosts")
    }

    /// Has local disks.
    pub fn local_disks(&self) -> bool {
        self.has("disks")
    }

    /// The hypervisor; bare metal has none.
    pub fn hypervisor(&self) -> Option<&'static str> {
        match (self.metal(), self.has("xen")) {
            (true, _) => None,
            (false, true) => Some("xen"),
            (false, false) => Some("nitro"),
        }
    }

    /// `m5` of `m5.large`.
    pub fn family(&self) -> &'static str {
        self.name.split('.').next().unwrap_or(self.name)
    }

    fn has(&self, property: &str) -> bool {
        self.properties.contains(&property)
    }
}

/// Every type, sorted by name.
pub fn all() -> &'static [InstanceType] {
    static ALL: LazyLock<Vec<InstanceType>> = LazyLock::new(|| {
        let mut types: Vec<_> = include_str!("types.txt").lines().filter_map(row).collect();
        types.sort_by_key(|t| t.name);
        types
    });
    &ALL
}

/// The type of this name.
pub fn find(name: &str) -> Option<&'static InstanceType> {
    let types = all();
    types.binary_search_by_key(&name, |t| t.name).ok().map(|i| &types[i])
}

/// One line of the table; `None` for a comment.
fn row(line: &'static str) -> Option<InstanceType> {
    let mut columns = line.split("  ").map(str::trim).filter(|c| !c.is_empty());
    let name = columns.next().filter(|name| !name.starts_with('#'))?;
    let vcpus = columns.next()?.parse().ok()?;
    let cores = columns.next()?.parse().ok()?;
    let memory_mib = columns.next()?.parse().ok()?;
    let architectures = columns.next()?.split('+').collect();
    let strategies = columns.next()?.split('+').filter_map(Strategy::parse).collect();
    let usage_classes = columns.next()?.split('+').collect();
    let interfaces = columns.next()?.parse().ok()?;
    let addresses_per_interface = columns.next()?.parse().ok()?;
    let efa_interfaces = columns.next()?.parse().ok()?;
    let properties = columns.next()?.split('+').collect();
    let gpu = gpu(columns.next()?);
    let price_micros = micros(columns.next()?)?;
    let manufacturer = columns.next()?;
    let network = columns.next()?;
    Some(InstanceType {
        name,
        vcpus,
        cores,
        memory_mib,
        architectures,
        strategies,
        usage_classes,
        interfaces,
        addresses_per_interface,
        efa_interfaces,
        gpu,
        manufacturer,
        network,
        price_micros,
        properties,
    })
}

/// `count/maker/name/MiB`.
fn gpu(text: &'static str) -> Option<Gpu> {
    let mut parts = text.split('/');
    Some(Gpu {
        count: parts.next()?.parse().ok()?,
        manufacturer: parts.next()?,
        name: parts.next()?,
        memory_mib: parts.next()?.parse().ok()?,
    })
}

/// A price such as `0.0960` in millionths, without the errors of binary fractions.
pub fn micros(price: &str) -> Option<u64> {
    let (whole, fraction) = price.split_once('.').unwrap_or((price, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if price.is_empty() || price == "." || !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(6)];
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(fraction)
}

/// Millionths of a dollar as EC2 writes prices.
pub fn price(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_type() {
        let lines = include_str!("types.txt").lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(all().len(), lines);
        assert!(lines >= 60);
        assert!(all().iter().all(|t| !t.strategies.is_empty() && t.price_micros > 0));
    }

    #[test]
    fn a_row_is_read_whole() {
        let t = find("g4dn.12xlarge").unwrap();
        assert_eq!((t.vcpus, t.memory_mib, t.efa_interfaces), (48, 196_608, 1));
        assert_eq!(t.gpu.unwrap().count, 4);
        assert!(t.current() && t.dedicated_hosts() && t.local_disks() && !t.metal());
        let t = find("t3.xlarge").unwrap();
        assert_eq!(t.strategies, [Strategy::Partition, Strategy::Spread]);
        assert!(t.burstable() && t.gpu.is_none());
        assert_eq!(find("m5.metal").unwrap().hypervisor(), None);
        assert!(find("m5.huge").is_none());
    }

    #[test]
    fn prices_are_exact() {
        assert_eq!(micros("0.0960"), Some(96_000));
        assert_eq!(micros("12"), Some(12_000_000));
        assert_eq!(micros(".5"), Some(500_000));
        assert_eq!(micros("0.01234567"), Some(12_345));
        assert_eq!([micros("-1"), micros("x"), micros(""), micros("1e3")], [None; 4]);
        assert_eq!(price(96_000), "0.096000");
    }
}
