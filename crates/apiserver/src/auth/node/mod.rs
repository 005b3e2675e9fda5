//! What a node may do: its kubelet is let near what its pods need, and no further.
//!
//! [`authorizer`] decides before a request is read, [`restriction`] when it is known what it
//! would change, [`relations`] tells which objects have to do with which node.

pub mod authorizer;
pub mod relations;
pub mod restriction;

pub use authorizer::NodeAuthorizer;

use crate::user::UserInfo;

/// The group of all nodes.
pub const NODES_GROUP: &str = "system:nodes";
const USER_PREFIX: &str = "system:node:";

/// The node that a user is, if it is one.
pub fn node_name(user: &UserInfo) -> Option<&str> {
    user.name.strip_prefix(USER_PREFIX).filter(|_| user.in_group(NODES_GROUP))
}
