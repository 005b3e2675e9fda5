//! The reference of the kinds, from their definitions.

use std::fmt::Write as _;

use serde_json::Value;

const OPENING: &str = "\
# Kinds

Every kind that Fleetwright defines, with every field that the API server checks. Written by
`cargo xtask generate` from the definitions that `fleetwright crds` prints; do not edit.
";

/// The page, in Markdown.
pub(super) fn page(definitions: &[Value]) -> String {
    let mut page = OPENING.to_owned();
    for definition in definitions {
        kind(definition, &mut page);
    }
    page
}

fn kind(definition: &Value, page: &mut String) {
    let spec = &definition["spec"];
    let names = &spec["names"];
    for version in spec["versions"].as_array().into_iter().flatten() {
        let schema = &version["schema"]["openAPIV3Schema"];
        let (group, name) = (text(&spec["group"]), text(&version["name"]));
        let _ = write!(page, "\n## {} ({group}/{name})\n\n", text(&names["kind"]));
        let _ = writeln!(page, "{}\n", text(&schema["description"]));
        let _ = write!(page, "`kubectl get {}`", text(&names["plural"]));
        let short: Vec<String> =
            list(&names["shortNames"]).iter().map(|name| format!("`{}`", text(name))).collect();
        if !short.is_empty() {
            let _ = write!(page, ", short {}", short.join(", "));
        }
        let scope = if spec["scope"] == "Cluster" { "of the cluster" } else { "of a namespace" };
        let _ = write!(page, "; {scope}");
        let subresources = version["subresources"].as_object();
        let subresources: Vec<&str> =
            subresources.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let _ = writeln!(page, "; subresources: {}.", subresources.join(", "));
        columns(&version["additionalPrinterColumns"], page);
        page.push_str("\n| field | type | |\n|---|---|---|\n");
        for part in ["spec", "status"] {
            fields(part, &schema["properties"][part], false, page);
        }
    }
}

fn columns(columns: &Value, page: &mut String) {
    let columns = list(columns);
    if columns.is_empty() {
        return;
    }
    let name = |column: &Value| {
        let wide = if column["priority"].as_i64().unwrap_or(0) > 0 { " (wide)" } else { "" };
        format!("{}{wide}", text(&column["name"]))
    };
    let names: Vec<String> = columns.iter().map(name).collect();
    let _ = writeln!(page, "Columns: {}.", names.join(", "));
}

/// One line for the field, and those below it.
fn fields(path: &str, schema: &Value, required: bool, page: &mut String) {
    let mut words = vec![cell(text(&schema["description"]))];
    if required {
        words.push("Required.".to_owned());
    }
    words.extend(limits(schema));
    words.retain(|word| !word.is_empty());
    let _ = writeln!(page, "| `{path}` | {} | {} |", type_of(schema), words.join(" "));
    for (below, schema) in [(path.to_owned(), schema), (format!("{path}[]"), &schema["items"])] {
        let needed = list(&schema["required"]);
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let required = needed.iter().any(|needed| needed == name);
            fields(&format!("{below}.{name}"), field, required, page);
        }
    }
}

fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    match text(&schema["type"]) {
        "array" => format!("list of {}", type_of(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => "map of strings".to_owned(),
        "string" if schema["format"] == "date-time" => "time".to_owned(),
        plain => plain.to_owned(),
    }
}

/// What the API server checks, in words.
fn limits(schema: &Value) -> Vec<String> {
    let mut limits = Vec::new();
    let value = |key: &str| match &schema[key] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let between = |low: &str, high: &str, what: &str| match (value(low), value(high)) {
        (Some(low), Some(high)) => Some(format!("{low} to {high}{what}.")),
        (Some(low), None) => Some(format!("At least {low}{what}.")),
        (None, Some(high)) => Some(format!("At most {high}{what}.")),
        (None, None) => None,
    };
    if let Some(default) = value("default") {
        limits.push(format!("Default `{default}`."));
    }
    let words: Vec<String> =
        list(&schema["enum"]).iter().map(|word| format!("`{}`", text(word))).collect();
    if !words.is_empty() {
        limits.push(format!("One of {}.", words.join(", ").replace("``", "nothing")));
    }
    limits.extend(between("minimum", "maximum", ""));
    limits.extend(between("minLength", "maxLength", " characters"));
    limits.extend(between("minItems", "maxItems", " items"));
    if let Some(pattern) = value("pattern") {
        limits.push(format!("Pattern `{}`.", cell(&pattern)));
    }
    for rule in list(&schema["x-kubernetes-validations"]) {
        limits.push(format!("Rule: {}.", cell(text(&rule["message"]))));
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        limits.push("Any fields are kept.".to_owned());
    }
    limits
}

/// A bar would end a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_what_the_server_checks() {
        let page = page(&crate::crds::documents().expect("definitions"));
        for wanted in [
            "## AWSPlacementGroup (machine.openshift.io/v1)",
            "`kubectl get machinehealthchecks`, short `mhc`, `mhcs`; of a namespace; subresources: status.",
            "Columns: Phase, Type, Region, Zone, Age, Node (wide), ProviderID (wide), State (wide).",
            "| `spec.replicas` | integer | How many Machines. Default `1`. |",
            "One of `Random`, `Newest`, `Oldest`.",
            "Required. One of `Managed`, `Unmanaged`. Rule: an unmanaged placement group cannot become managed.",
        ] {
            assert!(page.contains(wanted), "the page lacks {wanted}");
        }
        for line in page.lines().filter(|line| line.starts_with('|')) {
            let bars = line.replace("\\|", "").matches('|').count();
            assert_eq!(bars, 4, "{line}");
        }
    }
}
