//! The spec of a definition as it is checked.
//!
//! What is the same in all versions is checked once and reported under the spec, as the internal
//! type of the API has it there: `spec.validation` instead of `spec.versions[0].schema`.

use serde_json::Value;

/// A definition's spec.
pub(super) struct Spec {
    pub(super) group: String,
    pub(super) scope: String,
    pub(super) names: Names,
    pub(super) versions: Vec<Version>,
    /// Whether there is a list of versions at all; errors show the difference.
    pub(super) has_versions: bool,
    pub(super) preserve_unknown_fields: bool,
    pub(super) conversion: Option<Value>,
    /// `schema` if all versions have the same.
    pub(super) validation: Option<Value>,
    /// `subresources` if all versions have the same.
    pub(super) subresources: Option<Value>,
    /// `additionalPrinterColumns` if all versions have the same.
    pub(super) columns: Vec<Value>,
    /// `selectableFields` if all versions have the same.
    pub(super) selectable_fields: Vec<Value>,
}

/// One version, with what is not the same in all.
pub(super) struct Version {
    pub(super) name: String,
    pub(super) served: bool,
    pub(super) storage: bool,
    pub(super) deprecated: bool,
    pub(super) deprecation_warning: Option<String>,
    pub(super) schema: Option<Value>,
    pub(super) subresources: Option<Value>,
    pub(super) columns: Vec<Value>,
    pub(super) selectable_fields: Vec<Value>,
}

/// The names of a kind.
pub(super) struct Names {
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) kind: String,
    pub(super) list_kind: String,
    pub(super) short: Vec<String>,
    pub(super) categories: Vec<String>,
}

pub(super) fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(super) fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or_default()
}

pub(super) fn texts(value: &Value, name: &str) -> Vec<String> {
    let items = value.get(name).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(super) fn list(value: &Value, name: &str) -> Vec<Value> {
    value.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn present(value: &Value, name: &str) -> Option<Value> {
    value.get(name).filter(|value| !value.is_null()).cloned()
}

impl Names {
    pub(super) fn parse(names: &Value) -> Self {
        Self {
            plural: text(names, "plural"),
            singular: text(names, "singular"),
            kind: text(names, "kind"),
            list_kind: text(names, "listKind"),
            short: texts(names, "shortNames"),
            categories: texts(names, "categories"),
        }
    }
}

impl Spec {
    pub(super) fn parse(crd: &Value) -> Self {
        let spec = crd.get("spec").unwrap_or(&Value::Null);
        let versions = list(spec, "versions").iter().map(Version::parse).collect();
        let mut parsed = Self {
            group: text(spec, "group"),
            scope: text(spec, "scope"),
            names: Names::parse(spec.get("names").unwrap_or(&Value::Null)),
            versions,
            has_versions: spec.get("versions").is_some_and(Value::is_array),
            preserve_unknown_fields: flag(spec, "preserveUnknownFields"),
            conversion: present(spec, "conversion"),
            validation: None,
            subresources: None,
            columns: Vec::new(),
            selectable_fields: Vec::new(),
        };
        parsed.hoist();
        parsed
    }

    /// Moves what all versions share to the spec.
    fn hoist(&mut self) {
        let Some(first) = self.versions.first() else { return };
        if self.versions.iter().all(|version| version.schema == first.schema) {
            self.validation.clone_from(&first.schema);
            self.versions.iter_mut().for_each(|version| version.schema = None);
        }
        let Some(first) = self.versions.first() else { return };
        if self.versions.iter().all(|version| version.subresources == first.subresources) {
            self.subresources.clone_from(&first.subresources);
            self.versions.iter_mut().for_each(|version| version.subresources = None);
        }
        let Some(first) = self.versions.first() else { return };
        if self.versions.iter().all(|version| version.columns == first.columns) {
            self.columns.clone_from(&first.columns);
            self.versions.iter_mut().for_each(|version| version.columns.clear());
        }
        let Some(first) = self.versions.first() else { return };
        if self.versions.iter().all(|version| version.selectable_fields == first.selectable_fields)
        {
            self.selectable_fields.clone_from(&first.selectable_fields);
            self.versions.iter_mut().for_each(|version| version.selectable_fields.clear());
        }
    }

    /// Whether the status of objects of this version is a subresource.
    pub(super) fn has_status(&self, version: &Version) -> bool {
        if self.versions.iter().any(|version| version.subresources.is_some()) {
            enables_status(version.subresources.as_ref())
        } else {
            enables_status(self.subresources.as_ref())
        }
    }

    /// Whether the status is a subresource in some version.
    pub(super) fn has_any_status(&self) -> bool {
        enables_status(self.subresources.as_ref())
            || self.versions.iter().any(|version| enables_status(version.subresources.as_ref()))
    }
}

fn enables_status(subresources: Option<&Value>) -> bool {
    subresources.and_then(|s| s.get("status")).is_some_and(|status| !status.is_null())
}

impl Version {
    fn parse(version: &Value) -> Self {
        Self {
            name: text(version, "name"),
            served: flag(version, "served"),
            storage: flag(version, "storage"),
            deprecated: flag(version, "deprecated"),
            deprecation_warning: version
                .get("deprecationWarning")
                .and_then(Value::as_str)
                .map(str::to_owned),
            schema: present(version, "schema"),
            subresources: present(version, "subresources"),
            columns: list(version, "additionalPrinterColumns"),
            selectable_fields: list(version, "selectableFields"),
        }
    }
}
