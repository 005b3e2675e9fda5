//! What is allowed but probably not meant.

use std::collections::BTreeSet;

use fleetwright_kschema::{field::Path, gotext, names};
use serde_json::Value;

use super::super::super::check::{map, quantity};
use crate::object;

const DEPRECATED_NODE_LABELS: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// Warnings for a new pod.
pub(super) fn pod(pod: &Value) -> Vec<String> {
    let mut warnings = name_is_no_label(object::name(pod), "the Pod's hostname");
    warnings.extend(of_template(pod, &Path::root()));
    warnings
}

/// A name that becomes part of host names should be a DNS label.
pub(crate) fn name_is_no_label(name: &str, used_in: &str) -> Vec<String> {
    let reasons = names::dns_1123_label(name);
    if name.is_empty() || reasons.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS \
         label is recommended: [{}]",
        reasons.join(" ")
    )]
}

/// Warnings for a pod or a template of pods at `path`.
pub(crate) fn of_template(template: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec_path = path.child("spec");
    for (key, _) in map(template, &["spec", "nodeSelector"]).into_iter().flatten() {
        if let Some((_, message)) = DEPRECATED_NODE_LABELS.iter().find(|(label, _)| label == key) {
            warnings.push(format!("{}: {message}", spec_path.child("nodeSelector").key(key)));
        }
    }
    warnings.extend(spread(template, &spec_path.child("topologySpreadConstraints")));
    let lists = [("hostAliases", "ip"), ("imagePullSecrets", "name")];
    for (list, key) in lists {
        let path = spec_path.child(list);
        for (i, text) in repeated(object::list(template, &["spec", list]), key) {
            let text = gotext::quote(text);
            warnings.push(format!("{}: duplicate {key} {text}", path.index(i).child(key)));
        }
    }
    for (i, secret) in object::list(template, &["spec", "imagePullSecrets"]).iter().enumerate() {
        if object::text(secret, &["name"]).is_empty() {
            let path = spec_path.child("imagePullSecrets").index(i).child("name");
            warnings.push(format!("{path}: invalid empty name \"\""));
        }
    }
    for (container, path) in containers(template, &spec_path) {
        for list in ["limits", "requests"] {
            for name in ["memory", "ephemeral-storage"] {
                warnings.extend(fraction(container, list, name, &path));
            }
        }
        warnings.extend(hidden_variables(container, &path.child("env")));
    }
    warnings.extend(repeated_ports(template, &spec_path));
    if object::integer(template, &["spec", "terminationGracePeriodSeconds"]).is_some_and(|s| s < 0)
    {
        warnings.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            spec_path.child("terminationGracePeriodSeconds")
        ));
    }
    warnings
}

fn containers<'a>(template: &'a Value, path: &Path) -> Vec<(&'a Value, Path)> {
    ["initContainers", "containers"]
        .iter()
        .flat_map(|list| {
            let path = path.child(list);
            object::list(template, &["spec", list])
                .iter()
                .enumerate()
                .map(move |(i, container)| (container, path.index(i)))
        })
        .collect()
}

fn repeated<'a>(items: &'a [Value], key: &str) -> Vec<(usize, &'a str)> {
    let mut seen = BTreeSet::new();
    items
        .iter()
        .enumerate()
        .map(|(i, item)| (i, object::text(item, &[key])))
        .filter(|(_, text)| !seen.insert(*text))
        .collect()
}

fn spread(template: &Value, path: &Path) -> Vec<String> {
    let constraints = object::list(template, &["spec", "topologySpreadConstraints"]);
    constraints
        .iter()
        .enumerate()
        .filter(|(_, constraint)| constraint.get("labelSelector").is_none_or(Value::is_null))
        .map(|(i, _)| {
            let path = path.index(i).child("labelSelector");
            format!("{path}: a null labelSelector results in matching no pod")
        })
        .collect()
}

fn fraction(container: &Value, list: &str, name: &str, path: &Path) -> Option<String> {
    let value = object::get(container, &["resources", list, name])?;
    if quantity(value)?.is_whole() {
        return None;
    }
    let path = path.child("resources").child(list).key(name);
    let text = gotext::quote(value.as_str()?);
    Some(format!("{path}: fractional byte value {text} is invalid, must be an integer"))
}

fn hidden_variables(container: &Value, path: &Path) -> Vec<String> {
    let variables = object::list(container, &["env"]);
    repeated(variables, "name")
        .into_iter()
        .filter(|(i, name)| {
            let reference = format!("$({name})");
            let variable = variables.get(*i);
            let value = variable.map_or("", |v| object::text(v, &["value"]));
            let from = variable.is_some_and(|v| v.get("valueFrom").is_some());
            from || value == reference || !value.contains(&reference)
        })
        .map(|(i, name)| {
            format!(
                "{}: hides previous definition of {}, which may be dropped when using apply",
                path.index(i),
                gotext::quote(name)
            )
        })
        .collect()
}

fn repeated_ports(template: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut seen: Vec<(&Value, Path)> = Vec::new();
    for (container, path) in containers(template, path) {
        for (i, port) in object::list(container, &["ports"]).iter().enumerate() {
            let path = path.child("ports").index(i);
            for (other, other_path) in &seen {
                let same = |key: &str| port.get(key) == other.get(key);
                if !same("containerPort") || !same("protocol") {
                    continue;
                }
                let on_host = |port: &Value| port.get("hostPort").is_some();
                if same("hostIP") && same("hostPort") {
                    warnings.push(format!("{path}: duplicate port definition with {other_path}"));
                } else if !on_host(port) || !on_host(other) {
                    warnings.push(format!("{path}: overlapping port definition with {other_path}"));
                } else if same("hostPort")
                    && (port.get("hostIP").is_none() != other.get("hostIP").is_none())
                {
                    warnings.push(format!(
                        "{path}: dangerously ambiguous port definition with {other_path}"
                    ));
                }
            }
            seen.push((port, path));
        }
    }
    let mut names: Vec<(&str, &Path)> = Vec::new();
    for (port, path) in &seen {
        let name = object::text(port, &["name"]);
        match names.iter().find(|(known, _)| *known == name) {
            _ if name.is_empty() => {}
            Some((_, other)) => warnings.push(format!(
                "{path}: duplicate port name {} with {other}, services and probes that select ports \
                 by name will use {other}",
                gotext::quote(name)
            )),
            None => names.push((name, path)),
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn doubtful_pods_are_warned_about() {
        let doubtful = json!({
            "metadata": {"name": "a.b"},
            "spec": {
                "nodeSelector": {"beta.kubernetes.io/os": "linux"},
                "containers": [
                    {
                        "name": "a",
                        "env": [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}],
                        "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        "resources": {"limits": {"memory": "100m"}},
                    },
                    {"name": "b", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
                ],
            },
        });
        assert_eq!(
            pod(&doubtful),
            [
                "metadata.name: this is used in the Pod's hostname, which can result in surprising \
                 behavior; a DNS label is recommended: [must not contain dots]",
                "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \
                 \"kubernetes.io/os\" instead",
                "spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is \
                 invalid, must be an integer",
                "spec.containers[0].env[1]: hides previous definition of \"X\", which may be dropped \
                 when using apply",
                "spec.containers[1].ports[0]: duplicate port definition with \
                 spec.containers[0].ports[0]",
            ]
        );
    }
}
