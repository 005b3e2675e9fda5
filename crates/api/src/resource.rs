//! The root of a kind: type, metadata, spec, status.

/// Declares the root type of a kind. `spec` may be absent in JSON and is then empty; apiVersion
/// and kind are written always and not required on reading, as items of a list lack them.
macro_rules! resource {
    (
        $(#[$meta:meta])*
        $name:ident, group: $group:literal, version: $version:literal, plural: $plural:literal,
        scope: $scope:ident, spec: $spec:ty, status: $status:ty
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
        pub struct $name {
            /// Name, namespace, labels, annotations, owners, finalizers.
            #[serde(default)]
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            /// What is wanted.
            #[serde(default)]
            pub spec: $spec,
            /// What was observed; absent until a controller wrote it.
            #[serde(default)]
            pub status: Option<$status>,
        }

        impl $name {
            /// The group of the kind.
            pub const GROUP: &'static str = $group;
            /// The version of the kind.
            pub const VERSION: &'static str = $version;
            /// Group and version, as in the field `apiVersion`.
            pub const API_VERSION: &'static str = concat!($group, "/", $version);
            /// The kind.
            pub const KIND: &'static str = stringify!($name);
            /// The name of the resource in a path.
            pub const PLURAL: &'static str = $plural;

            /// An object with a name, a spec and nothing else.
            pub fn new(name: &str, spec: $spec) -> Self {
                Self {
                    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                        name: Some(name.to_owned()),
                        ..Default::default()
                    },
                    spec,
                    status: None,
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct as _;
                let fields = 4 + usize::from(self.status.is_some());
                let mut object = serializer.serialize_struct(stringify!($name), fields)?;
                object.serialize_field("apiVersion", Self::API_VERSION)?;
                object.serialize_field("kind", Self::KIND)?;
                object.serialize_field("metadata", &self.metadata)?;
                object.serialize_field("spec", &self.spec)?;
                if let Some(status) = &self.status {
                    object.serialize_field("status", status)?;
                }
                object.end()
            }
        }

        impl kube_core::Resource for $name {
            type DynamicType = ();
            type Scope = kube_core::$scope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                Self::KIND.into()
            }
            fn group((): &()) -> std::borrow::Cow<'_, str> {
                Self::GROUP.into()
            }
            fn version((): &()) -> std::borrow::Cow<'_, str> {
                Self::VERSION.into()
            }
            fn api_version((): &()) -> std::borrow::Cow<'_, str> {
                Self::API_VERSION.into()
            }
            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                Self::PLURAL.into()
            }
            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }

        impl kube_core::object::HasSpec for $name {
            type Spec = $spec;
            fn spec(&self) -> &$spec {
                &self.spec
            }
            fn spec_mut(&mut self) -> &mut $spec {
                &mut self.spec
            }
        }

        impl kube_core::object::HasStatus for $name {
            type Status = $status;
            fn status(&self) -> Option<&$status> {
                self.status.as_ref()
            }
            fn status_mut(&mut self) -> &mut Option<$status> {
                &mut self.status
            }
        }
    };
}
