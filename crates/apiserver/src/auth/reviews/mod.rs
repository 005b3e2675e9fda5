//! Questions about users and what they may do: objects that are answered and never stored.
//!
//! Each function takes the object that a client sent and returns the object to send back.

mod access;
mod metadata;
mod rules;
mod token;
mod whoami;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::user::UserInfo;

pub use access::{local_subject_access_review, self_subject_access_review, subject_access_review};
pub use rules::self_subject_rules_review;
pub use token::token_review;
pub use whoami::self_subject_review;

/// A user as the API shows one: what is empty is left out.
pub fn user_to_value(user: &UserInfo) -> Value {
    let mut map = Map::new();
    for (key, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            map.insert(key.to_owned(), text.clone().into());
        }
    }
    if !user.groups.is_empty() {
        map.insert("groups".to_owned(), user.groups.clone().into());
    }
    if !user.extra.is_empty() {
        map.insert("extra".to_owned(), extra_to_value(&user.extra));
    }
    Value::Object(map)
}

fn extra_to_value(extra: &BTreeMap<String, Vec<String>>) -> Value {
    extra.iter().map(|(key, values)| (key.clone(), Value::from(values.clone()))).collect()
}

/// The strings of a list.
fn strings(list: &[Value]) -> Vec<String> {
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parts_of_a_user_are_left_out() {
        assert_eq!(user_to_value(&UserInfo::default()), serde_json::json!({}));
        let mut user = UserInfo::new("alice", &["dev"]);
        user.extra.insert("k".into(), vec!["v".into()]);
        assert_eq!(
            user_to_value(&user),
            serde_json::json!({"username": "alice", "groups": ["dev"], "extra": {"k": ["v"]}})
        );
    }
}
