//! The ports of nodes that lead to Services.

use std::{collections::BTreeMap, ops::RangeInclusive};

use fleetwright_kschema::field::{FieldError, Path};
use serde_json::Value;

use super::super::super::{NotAllocated, Pool, check::Errors};
use crate::object;

const PORTS: RangeInclusive<i64> = 30_000..=32_767;
const ALLOCATED: &str = "provided port is already allocated";
const NOT_IN_RANGE: &str =
    "provided port is not in the valid range. The range of valid ports is 30000-32767";
const FULL: &str = "range is full";
/// How often a port is drawn before the free ones are counted through.
const DRAWS: usize = 64;

fn kind(service: &Value) -> &str {
    object::text(service, &["spec", "type"])
}

/// Whether nodes open ports for it.
pub(super) fn is_exposed(service: &Value) -> bool {
    matches!(kind(service), "NodePort" | "LoadBalancer")
}

fn allocates(service: &Value) -> bool {
    kind(service) == "NodePort"
        || (kind(service) == "LoadBalancer"
            && object::get(service, &["spec", "allocateLoadBalancerNodePorts"])
                != Some(&Value::Bool(false)))
}

/// Whether load balancers must ask nodes whether they have pods of it.
pub(super) fn needs_health_check(service: &Value) -> bool {
    kind(service) == "LoadBalancer"
        && object::text(service, &["spec", "externalTrafficPolicy"]) == "Local"
}

fn ports(service: &Value) -> &[Value] {
    object::list(service, &["spec", "ports"])
}

fn node_port(port: &Value) -> i64 {
    object::integer(port, &["nodePort"]).unwrap_or_default()
}

fn health_check(service: &Value) -> i64 {
    object::integer(service, &["spec", "healthCheckNodePort"]).unwrap_or_default()
}

fn numbers(service: &Value) -> Vec<i64> {
    ports(service).iter().map(node_port).filter(|number| *number != 0).collect()
}

/// The ports that a Service holds.
pub(super) fn held(service: &Value) -> impl Iterator<Item = String> {
    let mut held = numbers(service);
    held.extend(Some(health_check(service)).filter(|number| *number != 0));
    held.into_iter().map(|number| number.to_string())
}

/// What the client left out of an update stays.
pub(super) fn keep(new: &mut Value, old: &Value) {
    if allocates(new) && allocates(old) {
        let given = numbers(new);
        let mut used: Vec<i64> = numbers(old);
        used.retain(|number| given.contains(number));
        let by_name: BTreeMap<String, i64> = ports(old)
            .iter()
            .map(|port| (object::text(port, &["name"]).to_owned(), node_port(port)))
            .collect();
        each(new, |_, port| {
            if node_port(port) == 0
                && let Some(&before) = by_name.get(object::text(port, &["name"]))
                && before != 0
                && !used.contains(&before)
            {
                object::set(port, &["nodePort"], before);
                used.push(before);
            }
            Ok(())
        })
        .unwrap_or_default();
    }
    if needs_health_check(new) && needs_health_check(old) && health_check(new) == 0 {
        object::set(new, &["spec", "healthCheckNodePort"], health_check(old));
    }
}

/// What only makes sense for another type goes with the old type, unless the client changed it.
pub(super) fn drop_needless(new: &mut Value, old: &Value) {
    let same_ports = ports(new).len() == ports(old).len()
        && ports(new).iter().zip(ports(old)).all(|(a, b)| node_port(a) == node_port(b));
    if allocates(old) && !allocates(new) && same_ports {
        each(new, |_, port| {
            object::remove(port, &["nodePort"]);
            Ok(())
        })
        .unwrap_or_default();
    }
    let same = health_check(new) == health_check(old);
    if needs_health_check(old) && !needs_health_check(new) && same {
        object::remove(new, &["spec", "healthCheckNodePort"]);
    }
}

fn each(
    service: &mut Value,
    mut act: impl FnMut(usize, &mut Value) -> Result<(), NotAllocated>,
) -> Result<(), NotAllocated> {
    let Some(ports) = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut) else {
        return Ok(());
    };
    ports.iter_mut().enumerate().try_for_each(|(i, port)| act(i, port))
}

/// Draws ports, remembering those that this Service got.
struct Draw<'a> {
    pool: &'a Pool<'a>,
    own: Vec<i64>,
}

impl Draw<'_> {
    fn is_free(&self, number: i64) -> bool {
        !self.own.contains(&number) && !self.pool.taken.contains(&number.to_string())
    }

    fn take(&mut self, number: i64) -> Result<(), &'static str> {
        if !PORTS.contains(&number) {
            return Err(NOT_IN_RANGE);
        }
        if !self.is_free(number) {
            return Err(ALLOCATED);
        }
        self.own.push(number);
        Ok(())
    }

    fn any(&mut self) -> Result<i64, &'static str> {
        let count = PORTS.end() - PORTS.start() + 1;
        let random = || self.pool.random.below(count.unsigned_abs()).cast_signed() + PORTS.start();
        let drawn = (0..DRAWS).map(|_| random());
        let number = drawn.chain(PORTS).find(|number| self.is_free(*number)).ok_or(FULL)?;
        self.own.push(number);
        Ok(number)
    }
}

/// Gives a Service the ports that it asks for, or any.
pub(super) fn allocate(
    new: &mut Value,
    old: Option<&Value>,
    pool: &Pool<'_>,
) -> Result<(), NotAllocated> {
    let mut draw = Draw { pool, own: Vec::new() };
    if is_exposed(new) {
        let before = old.filter(|old| is_exposed(old)).map(numbers);
        allocate_ports(new, before.as_deref(), &mut draw)?;
    }
    let needed = old.is_some_and(needs_health_check);
    if needs_health_check(new) && !needed {
        let internal = |what: String, why: &str| {
            NotAllocated::Internal(format!("failed to allocate {what}: {why}"))
        };
        match health_check(new) {
            0 => {
                let number = draw
                    .any()
                    .map_err(|why| internal("a HealthCheck NodePort 0".to_owned(), why))?;
                object::set(new, &["spec", "healthCheckNodePort"], number);
            }
            wanted => draw
                .take(wanted)
                .map_err(|why| internal(format!("requested HealthCheck NodePort {wanted}"), why))?,
        }
    }
    Ok(())
}

fn allocate_ports(
    service: &mut Value,
    before: Option<&[i64]>,
    draw: &mut Draw<'_>,
) -> Result<(), NotAllocated> {
    let allocates = allocates(service);
    let asked: Vec<(i64, i64)> =
        ports(service).iter().map(|port| (number_of(port), node_port(port))).collect();
    // One node port serves a port in all of its protocols; a new Service is given it so.
    let mut by_port: BTreeMap<i64, i64> = BTreeMap::new();
    each(service, |i, port| {
        let (number, wanted) = (number_of(port), node_port(port));
        if wanted == 0 && !allocates {
            return Ok(());
        }
        let refused = |wanted: i64, why: &str| {
            let path = Path::new("spec").child("ports").index(i).child("nodePort");
            NotAllocated::Invalid(vec![FieldError::invalid(&path, wanted, why)])
        };
        let full =
            |why: &str| NotAllocated::Internal(format!("failed to allocate a nodePort: {why}"));
        if let Some(before) = before {
            if wanted == 0 {
                object::set(port, &["nodePort"], draw.any().map_err(full)?);
            } else if !before.contains(&wanted) && !draw.own.contains(&wanted) {
                draw.take(wanted).map_err(|why| refused(wanted, why))?;
            }
            return Ok(());
        }
        match by_port.get(&number).copied() {
            None => {
                // A later entry for the same port may name one.
                let requested =
                    asked.iter().find(|(other, node)| *other == number && *node != 0).map(|a| a.1);
                let node = match requested {
                    Some(node) => {
                        draw.take(node).map_err(|why| refused(node, why))?;
                        node
                    }
                    None => draw.any().map_err(full)?,
                };
                object::set(port, &["nodePort"], node);
                by_port.insert(number, node);
            }
            Some(node) if wanted == 0 => object::set(port, &["nodePort"], node),
            Some(node) if wanted != node => {
                draw.take(wanted).map_err(|why| refused(wanted, why))?;
            }
            Some(_) => {}
        }
        Ok(())
    })
}

fn number_of(port: &Value) -> i64 {
    object::integer(port, &["port"]).unwrap_or_default()
}

/// What is wrong with the traffic that comes from outside.
pub(super) fn external_traffic(service: &Value) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("spec").child("healthCheckNodePort");
    if !needs_health_check(service) && health_check(service) != 0 {
        let reason =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(&path, health_check(service), reason));
    }
    errors
}

/// The port for health checks stays while it is needed.
pub(super) fn unchanged(new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    let both = needs_health_check(new) && needs_health_check(old);
    if both && health_check(new) != health_check(old) {
        let path = Path::new("spec").child("healthCheckNodePort");
        errors.push(FieldError::forbidden(&path, "field is immutable"));
    }
    errors
}
