//! A CustomResourceDefinition, put together from its parts.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceScale,
    CustomResourceSubresourceStatus, CustomResourceSubresources, CustomResourceValidation,
    JSONSchemaProps,
};
use kube_core::{ObjectMeta, Resource};
use serde_json::Value;

use super::Schema;

/// What `kubectl get` shows in one column.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) type_: &'static str,
    pub(super) path: &'static str,
    pub(super) text: &'static str,
    /// Shown with `-o wide` only.
    pub(super) wide: bool,
}

/// A column that is always shown.
pub(super) const fn column(
    name: &'static str,
    type_: &'static str,
    path: &'static str,
    text: &'static str,
) -> Column {
    Column { name, type_, path, text, wide: false }
}

/// A column that is shown with `-o wide`.
pub(super) const fn wide(
    name: &'static str,
    type_: &'static str,
    path: &'static str,
    text: &'static str,
) -> Column {
    Column { name, type_, path, text, wide: true }
}

/// One kind in one version, with a status subresource.
pub(super) struct Definition {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    pub(super) scope: &'static str,
    pub(super) short_names: &'static [&'static str],
    pub(super) annotations: &'static [(&'static str, &'static str)],
    pub(super) columns: Vec<Column>,
    pub(super) text: &'static str,
    pub(super) spec: Schema,
    pub(super) status: Schema,
    /// Fields of the root that must be there.
    pub(super) required: &'static [&'static str],
    /// Paths of wanted replicas, observed replicas, selector.
    pub(super) scale: Option<[&'static str; 3]>,
}

impl Definition {
    /// A kind of a namespace, without columns.
    pub(super) fn of<K: Resource<DynamicType = ()>>(
        text: &'static str,
        spec: Schema,
        status: Schema,
    ) -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            scope: "Namespaced",
            short_names: &[],
            annotations: &[],
            columns: Vec::new(),
            text,
            spec,
            status,
            required: &[],
            scale: None,
        }
    }

    /// The object for the API server.
    pub(super) fn build(self) -> CustomResourceDefinition {
        let Self {
            group,
            version,
            kind,
            plural,
            scope,
            short_names,
            annotations,
            columns,
            text,
            spec,
            status,
            required,
            scale,
        } = self;
        let mut root = Schema::object(
            text,
            [
                ("apiVersion", Schema::string("Group and version of this object.")),
                ("kind", Schema::string("Kind of this object.")),
                ("metadata", Schema::empty("")),
                ("spec", spec),
                ("status", status),
            ],
        );
        if !required.is_empty() {
            root = root.required(required);
        }
        let annotations = annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        CustomResourceDefinition {
            metadata: ObjectMeta {
                name: Some(format!("{plural}.{group}")),
                annotations: Some(annotations.collect()),
                ..ObjectMeta::default()
            },
            spec: CustomResourceDefinitionSpec {
                group,
                names: CustomResourceDefinitionNames {
                    list_kind: Some(format!("{kind}List")),
                    singular: Some(kind.to_lowercase()),
                    kind,
                    plural,
                    short_names: (!short_names.is_empty())
                        .then(|| short_names.iter().map(|name| (*name).to_owned()).collect()),
                    ..CustomResourceDefinitionNames::default()
                },
                scope: scope.to_owned(),
                versions: vec![CustomResourceDefinitionVersion {
                    name: version,
                    served: true,
                    storage: true,
                    additional_printer_columns: (!columns.is_empty())
                        .then(|| columns.iter().map(printed).collect()),
                    schema: Some(CustomResourceValidation {
                        open_api_v3_schema: Some(props(root.into())),
                    }),
                    subresources: Some(CustomResourceSubresources {
                        scale: scale.map(|[wanted, observed, selector]| {
                            CustomResourceSubresourceScale {
                                spec_replicas_path: wanted.to_owned(),
                                status_replicas_path: observed.to_owned(),
                                label_selector_path: Some(selector.to_owned()),
                            }
                        }),
                        status: Some(CustomResourceSubresourceStatus(Value::Object(
                            serde_json::Map::new(),
                        ))),
                    }),
                    ..CustomResourceDefinitionVersion::default()
                }],
                ..CustomResourceDefinitionSpec::default()
            },
            status: None,
        }
    }
}

fn printed(column: &Column) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: column.name.to_owned(),
        type_: column.type_.to_owned(),
        json_path: column.path.to_owned(),
        description: Some(column.text.to_owned()),
        priority: column.wide.then_some(1),
        ..CustomResourceColumnDefinition::default()
    }
}

/// The schema as the type of the API. It is made of this crate's constants alone, and the tests
/// build every one.
fn props(schema: Value) -> JSONSchemaProps {
    serde_json::from_value(schema).expect("the builder makes schemas only")
}
