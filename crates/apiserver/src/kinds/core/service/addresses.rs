//! Which IP families and addresses a Service has. The cluster has IPv4 alone.

use std::net::{IpAddr, Ipv4Addr};

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::{Value, json};

use super::super::{
    super::{
        NotAllocated, Pool,
        check::{Errors, has, is_set, one_of},
    },
    pod::validate::ip,
};
use crate::object;

/// The range that addresses are taken from, 10.96.0.0/12, as kubeadm has it.
const NETWORK: u32 = Ipv4Addr::new(10, 96, 0, 0).to_bits();
const SIZE: u32 = 1 << 20;
/// The address of the API itself, as pods would see it.
const RESERVED: Ipv4Addr = Ipv4Addr::from_bits(NETWORK + 1);
/// How often an address is drawn before the free ones are counted through.
const DRAWS: usize = 64;

pub(super) const HEADLESS: &str = "None";
const V4: &str = "IPv4";
const V6: &str = "IPv6";
const SINGLE: &str = "SingleStack";
const PREFER_DUAL: &str = "PreferDualStack";
const DUAL: &str = "RequireDualStack";

pub(super) fn is_external_name(service: &Value) -> bool {
    object::text(service, &["spec", "type"]) == "ExternalName"
}

pub(super) fn cluster_ips(service: &Value) -> &[Value] {
    object::list(service, &["spec", "clusterIPs"])
}

pub(super) fn is_headless(service: &Value) -> bool {
    matches!(cluster_ips(service), [only] if only == HEADLESS)
}

fn cluster_ip(service: &Value) -> &str {
    object::text(service, &["spec", "clusterIP"])
}

/// A list as Go prints it: one that is not there is `null`.
fn shown(service: &Value, key: &str) -> Value {
    object::get(service, &["spec", key]).cloned().unwrap_or_default()
}

/// The addresses that a Service holds.
pub(super) fn held(service: &Value) -> impl Iterator<Item = String> {
    let taken = if is_external_name(service) { &[] } else { cluster_ips(service) };
    taken.iter().filter_map(Value::as_str).filter(|ip| *ip != HEADLESS).map(str::to_owned)
}

/// A client may give one address, several, or, in an update, none to keep what there is.
pub(super) fn synchronise(new: &mut Value, old: Option<&Value>) {
    let Some(old) = old else {
        if !cluster_ip(new).is_empty() && !has(new, &["spec", "clusterIPs"]) {
            let addresses = json!([cluster_ip(new)]);
            object::set(new, &["spec", "clusterIPs"], addresses);
        }
        return;
    };
    if !is_external_name(new) && !is_external_name(old) && cluster_ip(new).is_empty() {
        copy(new, old, "clusterIP");
    }
    let same = cluster_ip(new) == cluster_ip(old);
    if same && !has(new, &["spec", "clusterIPs"]) && has(old, &["spec", "clusterIPs"]) {
        copy(new, old, "clusterIPs");
    }
    if !same && cluster_ips(new) == cluster_ips(old) {
        if cluster_ip(new).is_empty() {
            object::remove(new, &["spec", "clusterIPs"]);
        } else {
            let addresses = json!([cluster_ip(new)]);
            object::set(new, &["spec", "clusterIPs"], addresses);
        }
    }
}

fn copy(new: &mut Value, old: &Value, key: &str) {
    if let Some(value) = object::get(old, &["spec", key]) {
        object::set(new, &["spec", key], value.clone());
    }
}

/// Sets the families of a Service and their policy, or says why they cannot be had.
pub(super) fn families(new: &mut Value, old: Option<&Value>) -> Result<(), NotAllocated> {
    if is_external_name(new) || old.is_some_and(|old| prefers_as_before(new, old)) {
        return Ok(());
    }
    let open = cluster_ip(new) == HEADLESS && !has(new, &["spec", "selector"]);
    if !is_set(new, &["spec", "ipFamilyPolicy"]) {
        let before = old.map(|old| object::text(old, &["spec", "ipFamilyPolicy"]));
        let policy = match before {
            Some(before) if !before.is_empty() => before,
            // Without a selector, whoever makes the endpoints may use both families.
            _ if open => DUAL,
            _ => SINGLE,
        };
        object::set(new, &["spec", "ipFamilyPolicy"], policy.to_owned());
    }
    refuse(related(new))?;
    let policy = object::text(new, &["spec", "ipFamilyPolicy"]).to_owned();
    let mut errors = policy_errors(new, old, &policy);
    let path = Path::new("spec");
    let mut families = object::list(new, &["spec", "ipFamilies"]).to_vec();
    for (i, address) in cluster_ips(new).iter().filter_map(Value::as_str).enumerate() {
        if address == HEADLESS {
            break;
        }
        if i < families.len() {
            continue;
        }
        if family(address) == V6 {
            let path = path.child("clusterIPs").index(i);
            let reason = format!("{V6} is not configured on this cluster");
            errors.push(FieldError::invalid(&path, shown(new, "clusterIPs"), reason));
        } else {
            families.push(V4.into());
        }
    }
    refuse(errors)?;
    if families.is_empty() {
        families.push(V4.into());
    }
    if open {
        if families.len() < 2 && policy != SINGLE {
            let other = if families.first() == Some(&V4.into()) { V6 } else { V4 };
            families.push(other.into());
        }
        object::set(new, &["spec", "ipFamilies"], families);
        return Ok(());
    }
    let mut errors = Errors::new();
    if policy == DUAL {
        let reason = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(&path.child("ipFamilyPolicy"), policy, reason));
    }
    for (i, found) in families.iter().enumerate().filter(|(_, found)| *found != V4) {
        let path = path.child("ipFamilies").index(i);
        errors.push(FieldError::invalid(&path, found.clone(), "not configured on this cluster"));
    }
    refuse(errors)?;
    object::set(new, &["spec", "ipFamilies"], families);
    Ok(())
}

fn refuse(errors: Errors) -> Result<(), NotAllocated> {
    if errors.is_empty() { Ok(()) } else { Err(NotAllocated::Invalid(errors)) }
}

/// A Service that would rather have both families is left as it is while it does not change.
fn prefers_as_before(new: &Value, old: &Value) -> bool {
    let same = |key| object::get(new, &["spec", key]) == object::get(old, &["spec", key]);
    object::text(new, &["spec", "ipFamilyPolicy"]) == PREFER_DUAL
        && ["type", "ipFamilyPolicy", "clusterIP", "clusterIPs", "ipFamilies"].into_iter().all(same)
}

fn family(address: &str) -> &'static str {
    if address.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) { V6 } else { V4 }
}

/// What is wrong with addresses, families and policy by themselves.
pub(super) fn related(service: &Value) -> Errors {
    let mut errors = Errors::new();
    if is_external_name(service) {
        return errors;
    }
    let path = Path::new("spec");
    let addresses_path = path.child("clusterIPs");
    let addresses: Vec<&str> = cluster_ips(service).iter().filter_map(Value::as_str).collect();
    let all = || shown(service, "clusterIPs");
    match (cluster_ip(service), addresses.first()) {
        ("", Some(_)) => {
            let reason = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(&addresses_path, all(), reason));
        }
        (one, None) if !one.is_empty() => errors.push(FieldError::required(&addresses_path, "")),
        (one, Some(first)) if one != *first => {
            let reason = "first value must match `clusterIP`";
            errors.push(FieldError::invalid(&addresses_path, all(), reason));
        }
        _ => {}
    }
    let families: Vec<&str> =
        object::list(service, &["spec", "ipFamilies"]).iter().filter_map(Value::as_str).collect();
    for (i, found) in families.iter().enumerate() {
        let path = path.child("ipFamilies").index(i);
        errors.extend(one_of(found, &[V4, V6], &path));
        if families.iter().take(i).any(|other| other == found) {
            errors.push(FieldError::duplicate(&path, *found));
        }
    }
    if is_set(service, &["spec", "ipFamilyPolicy"]) {
        let policy = object::text(service, &["spec", "ipFamilyPolicy"]);
        errors.extend(one_of(policy, &[PREFER_DUAL, DUAL, SINGLE], &path.child("ipFamilyPolicy")));
    }
    let mut malformed = false;
    for (i, address) in addresses.iter().enumerate() {
        if i == 0 && *address == HEADLESS {
            if addresses.len() > 1 {
                malformed = true;
                let reason = "'None' must be the first and only value";
                errors.push(FieldError::invalid(&addresses_path, all(), reason));
            }
            continue;
        }
        let found = ip(address, &addresses_path.index(i));
        malformed |= !found.is_empty();
        errors.extend(found);
    }
    if addresses.len() > 2 {
        let reason = "may only hold up to 2 values";
        errors.push(FieldError::invalid(&addresses_path, all(), reason));
    }
    if malformed {
        return errors;
    }
    if addresses.len() > 1 {
        let sixes = addresses.iter().filter(|address| family(address) == V6).count();
        if sixes == 0 || sixes == addresses.len() {
            let reason = "may specify no more than one IP for each IP family";
            errors.push(FieldError::invalid(&addresses_path, all(), reason));
        }
    }
    if !is_headless(service) {
        for (i, (address, expected)) in addresses.iter().zip(&families).enumerate() {
            if family(address) != *expected {
                let reason =
                    format!("expected an {expected} value as indicated by `ipFamilies[{i}]`");
                errors.push(FieldError::invalid(&addresses_path.index(i), *address, reason));
            }
        }
    }
    errors
}

/// Whether the policy goes with the number of addresses and families.
fn policy_errors(new: &mut Value, old: Option<&Value>, policy: &str) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("spec").child("ipFamilyPolicy");
    let mut fault = |reason: &str| errors.push(FieldError::invalid(&path, policy, reason));
    for (key, one, several) in [
        (
            "clusterIPs",
            "must be 'SingleStack' to release the secondary cluster IP",
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified",
        ),
        (
            "ipFamilies",
            "must be 'SingleStack' to release the secondary IP family",
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
        ),
    ] {
        let at = ["spec", key];
        let before = old.map(|old| object::list(old, &at)).unwrap_or_default();
        let now = object::list(new, &at);
        if policy == SINGLE && before == now && now.len() > 1 {
            let first = now.first().cloned();
            object::set(new, &at, first.into_iter().collect::<Vec<_>>());
        } else if policy != SINGLE && !now.is_empty() && now.len() < before.len() {
            fault(one);
        }
        if policy == SINGLE && object::list(new, &at).len() == 2 {
            fault(several);
        }
    }
    errors
}

/// Gives a Service the address that it asks for, or any.
pub(super) fn allocate(
    new: &mut Value,
    old: Option<&Value>,
    pool: &Pool<'_>,
) -> Result<(), NotAllocated> {
    let had_one = old.is_some_and(|old| !is_external_name(old));
    if had_one || is_external_name(new) || is_headless(new) {
        return Ok(());
    }
    let wanted = cluster_ip(new).to_owned();
    let address = if wanted.is_empty() {
        any(pool).ok_or_else(|| {
            let name = fleetwright_kschema::gotext::quote(object::name(new));
            NotAllocated::Internal(format!(
                "failed to allocate a serviceIP for Service {name}: range is full"
            ))
        })?
    } else {
        available(&wanted, pool).map_err(|why| {
            let path = Path::new("spec").child("clusterIPs");
            let reason = format!("failed to allocate IP {wanted}: {why}");
            let error = FieldError::invalid(&path, shown(new, "clusterIPs"), reason);
            NotAllocated::Invalid(vec![error])
        })?;
        wanted
    };
    object::set(new, &["spec", "clusterIP"], address.clone());
    object::set(new, &["spec", "clusterIPs"], json!([address]));
    Ok(())
}

fn is_free(address: Ipv4Addr, pool: &Pool<'_>) -> bool {
    address != RESERVED && !pool.taken.contains(&address.to_string())
}

/// A free address, by chance.
fn any(pool: &Pool<'_>) -> Option<String> {
    // Neither the network's own address nor the one for everybody.
    let usable = u64::from(SIZE - 2);
    let nth = |n: u64| Ipv4Addr::from_bits(NETWORK + 1 + u32::try_from(n).unwrap_or_default());
    let drawn = (0..DRAWS).map(|_| nth(pool.random.below(usable)));
    let mut candidates = drawn.chain((0..usable).map(nth));
    candidates.find(|address| is_free(*address, pool)).map(|address| address.to_string())
}

fn available(wanted: &str, pool: &Pool<'_>) -> Result<(), String> {
    let mismatch = "the provided network does not match the current range";
    let address: Ipv4Addr = wanted.parse().map_err(|_| mismatch.to_owned())?;
    let place = address.to_bits().checked_sub(NETWORK).filter(|place| *place < SIZE - 1);
    match place {
        None | Some(0) => Err(mismatch.to_owned()),
        Some(_) if !is_free(address, pool) => Err("provided IP is already allocated".to_owned()),
        Some(_) => Ok(()),
    }
}

/// An address and its family stay while the Service has one.
pub(super) fn unchanged(new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    if is_external_name(new) || is_external_name(old) || (is_headless(new) && is_headless(old)) {
        return errors;
    }
    let path = Path::new("spec");
    let (now, before) = (cluster_ips(new), cluster_ips(old));
    let first = path.child("clusterIPs").index(0);
    if now.is_empty() && !before.is_empty() {
        let reason = "primary clusterIP can not be unset";
        errors.push(FieldError::invalid(&first, shown(new, "clusterIPs"), reason));
    } else if !before.is_empty() && now.first() != before.first() {
        let reason = "may not change once set";
        errors.push(FieldError::invalid(&first, shown(new, "clusterIPs"), reason));
    }
    if is_headless(new) || is_headless(old) {
        return errors;
    }
    let families = |service| object::list(service, &["spec", "ipFamilies"]).first();
    if families(old).is_some() && families(new) != families(old) {
        let first = path.child("ipFamilies").index(0);
        let reason = "may not change once set";
        errors.push(FieldError::invalid(&first, shown(new, "ipFamilies"), reason));
    }
    errors
}
