//! The calls that we make, as the public service models describe them.
//!
//! The modules below are written by `cargo xtask generate` from what `model/selection.json` picks;
//! this file says what their words mean.

use std::fmt;

use serde::Serialize;

use crate::xml::FromXml;

#[rustfmt::skip]
pub mod ec2;
#[rustfmt::skip]
pub mod elb;
#[rustfmt::skip]
pub mod elbv2;
#[rustfmt::skip]
pub mod sts;

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name among the models (`elbv2`).
    pub name: &'static str,
    /// Its name in host names, signatures and permissions (`elasticloadbalancing`).
    pub endpoint: &'static str,
    /// The version of its API.
    pub version: &'static str,
}

/// Every service with the operations that we call.
pub const SERVICES: &[(Service, &[&str])] = &[
    (ec2::SERVICE, ec2::OPERATIONS),
    (elb::SERVICE, elb::OPERATIONS),
    (elbv2::SERVICE, elbv2::OPERATIONS),
    (sts::SERVICE, sts::OPERATIONS),
];

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It changes nothing.
    Read,
    /// It changes something, and twice is the same as once.
    Repeatable,
    /// It changes something each time.
    Write,
}

/// An operation, by its request.
pub trait Operation: Serialize + Send + Sync {
    /// Where it belongs.
    const SERVICE: Service;
    /// Its name.
    const ACTION: &'static str;
    /// What it does.
    const KIND: Kind;
    /// The element of the answer that holds the result, where it is not the answer itself.
    const RESULT: Option<&'static str>;
    /// What is answered.
    type Output: FromXml + Send;
}

/// Whether a member is not sent.
trait Absent {
    fn is_absent(&self) -> bool;
}

impl<T> Absent for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T> Absent for Vec<T> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

/// Says only what it is: requests and answers hold user data and credentials.
fn name_alone(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_struct(name).finish_non_exhaustive()
}

macro_rules! operation {
    ($action:ident, $kind:expr, $result:expr, $request:path => $output:ty) => {
        impl Operation for $request {
            const SERVICE: Service = SERVICE;
            const ACTION: &'static str = stringify!($action);
            const KIND: Kind = $kind;
            const RESULT: Option<&'static str> = $result;
            type Output = $output;
        }
    };
}

/// A structure that is sent; its members are named as they are on the wire.
macro_rules! request {
    ($name:ident { $($field:ident: $type:ty = $wire:literal,)* }) => {
        #[doc = concat!("`", stringify!($name), "` of the service model.")]
        #[derive(Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(
                #[doc = concat!("`", $wire, "`.")]
                #[serde(
                    rename = $wire,
                    skip_serializing_if = "crate::model::Absent::is_absent"
                )]
                pub $field: $type,
            )*
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                crate::model::name_alone(stringify!($name), f)
            }
        }
    };
}

/// A structure that is answered.
macro_rules! response {
    ($name:ident {}) => {
        #[doc = concat!("`", stringify!($name), "` of the service model.")]
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {}

        impl crate::xml::FromXml for $name {
            fn from_xml(_: &crate::xml::Element) -> Result<Self, crate::xml::XmlError> {
                Ok(Self {})
            }
        }
    };
    ($name:ident { $($field:ident: $type:ty = $wire:literal,)+ }) => {
        #[doc = concat!("`", stringify!($name), "` of the service model.")]
        #[derive(Clone, Default, PartialEq)]
        pub struct $name {
            $(
                #[doc = concat!("`", $wire, "`.")]
                pub $field: $type,
            )+
        }

        impl crate::xml::FromXml for $name {
            fn from_xml(element: &crate::xml::Element) -> Result<Self, crate::xml::XmlError> {
                Ok(Self { $($field: element.member($wire)?,)+ })
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                crate::model::name_alone(stringify!($name), f)
            }
        }
    };
}

pub(crate) use {operation, request, response};

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    /// What can be known without the models: that the files were written after the last change of
    /// the selection. `cargo xtask generate --check` compares them with the models.
    #[test]
    fn the_shapes_are_those_of_the_selection() {
        let digest = Sha256::digest(include_bytes!("../../model/selection.json"));
        let digest = format!("// Selection: {digest:x}\n");
        for (name, source) in [
            ("ec2", include_str!("ec2.rs")),
            ("elb", include_str!("elb.rs")),
            ("elbv2", include_str!("elbv2.rs")),
            ("sts", include_str!("sts.rs")),
        ] {
            assert!(source.contains(&digest), "{name}: run `cargo xtask generate --aws`");
        }
    }
}
