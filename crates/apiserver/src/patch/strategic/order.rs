//! The order of a merged list.
//!
//! Elements of the patch come in the patch's order, the others in the order they had. The two
//! are interleaved by their places in the list before, as far as those are known.

use serde_json::Value;

use super::directives::{DELETE, PATCH};
use super::{PatchError, expected, lists::no_merge_key};

/// Interleaves the elements that the patch names with the others.
pub(super) fn ordered(
    listed: Vec<Value>,
    others: Vec<Value>,
    listed_order: &[Value],
    other_order: &[Value],
    key: &str,
    maps: bool,
) -> Result<Vec<Value>, PatchError> {
    let listed = sorted(listed, listed_order, key, maps)?;
    let others = sorted(others, other_order, key, maps)?;
    let mut merged = Vec::with_capacity(listed.len() + others.len());
    let (mut left, mut right) = (others.into_iter().peekable(), listed.into_iter().peekable());
    loop {
        let take_left = match (left.peek(), right.peek()) {
            (None, None) => return Ok(merged),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(left), Some(right)) => {
                let places =
                    (place(other_order, left, key, maps), place(other_order, right, key, maps));
                matches!(places, (Some(left), Some(right)) if left < right)
            }
        };
        merged.extend(if take_left { left.next() } else { right.next() });
    }
}

/// Sorts by the places in another list; elements that only delete come last.
fn sorted(
    mut list: Vec<Value>,
    order: &[Value],
    key: &str,
    maps: bool,
) -> Result<Vec<Value>, PatchError> {
    let mut deleting = Vec::new();
    if maps {
        for item in list.iter().chain(order) {
            let Value::Object(map) = item else {
                return Err(expected("map[string]interface {}", item));
            };
            if !map.contains_key(key) {
                return Err(no_merge_key(map, key));
            }
        }
        let deletes = |item: &Value| item.get(PATCH).and_then(Value::as_str) == Some(DELETE);
        (deleting, list) = list.into_iter().partition(deletes);
    }
    // Go's stable sort with a comparison that calls unknown elements smaller.
    for end in 1..list.len() {
        for at in (1..=end).rev() {
            let places = (
                list.get(at).and_then(|item| place(order, item, key, maps)),
                list.get(at - 1).and_then(|item| place(order, item, key, maps)),
            );
            match places {
                (Some(this), Some(before)) if this >= before => break,
                _ => list.swap(at, at - 1),
            }
        }
    }
    list.append(&mut deleting);
    Ok(list)
}

/// The place of an element in a list: by its key if it is a map.
fn place(list: &[Value], item: &Value, key: &str, maps: bool) -> Option<usize> {
    if maps {
        list.iter().position(|other| other.get(key) == item.get(key))
    } else {
        list.iter().position(|other| other == item)
    }
}
