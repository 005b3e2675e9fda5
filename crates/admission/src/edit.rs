//! Changes to an object, and the JSON patch that makes them.

use serde_json::{Map, Value, json};

/// An object that is being changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    object: Value,
    patch: Vec<Value>,
}

impl Edit {
    /// Begins with an object as it is.
    pub fn new(object: Value) -> Self {
        Self { object, patch: Vec::new() }
    }

    /// The object as it is now.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// The value at a path of field names; none where a part of it is missing or null.
    pub fn get(&self, path: &[&str]) -> Option<&Value> {
        let found = path.iter().try_fold(&self.object, |value, name| value.get(name))?;
        (!found.is_null()).then_some(found)
    }

    /// Sets the value at a path of field names. Objects on the way that are missing, or are no
    /// objects, are made; nothing else changes.
    pub fn set(&mut self, path: &[&str], value: Value) {
        let mut here = &mut self.object;
        let mut pointer = String::new();
        for (place, name) in path.iter().enumerate() {
            if !here.is_object() {
                *here = Value::Object(Map::new());
                self.patch.push(json!({"op": "add", "path": pointer, "value": {}}));
            }
            let Value::Object(fields) = here else { return };
            pointer.push('/');
            pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            if place + 1 == path.len() {
                self.patch.push(json!({"op": "add", "path": pointer, "value": value}));
                fields.insert((*name).to_owned(), value);
                return;
            }
            here = fields.entry(*name).or_insert(Value::Null);
        }
    }

    /// The JSON patch from the object that was to the one that is.
    pub fn into_patch(self) -> Vec<Value> {
        self.patch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patch_makes_the_change() {
        let mut edit = Edit::new(json!({"metadata": {"labels": null}, "spec": {"a": 1}}));
        assert_eq!(edit.get(&["metadata", "labels"]), None);
        edit.set(&["metadata", "labels", "x.io/y"], json!("z"));
        edit.set(&["spec", "a"], json!(2));
        assert_eq!(edit.get(&["spec", "a"]), Some(&json!(2)));
        assert_eq!(
            edit.object(),
            &json!({"metadata": {"labels": {"x.io/y": "z"}}, "spec": {"a": 2}})
        );
        assert_eq!(
            edit.into_patch(),
            [
                json!({"op": "add", "path": "/metadata/labels", "value": {}}),
                json!({"op": "add", "path": "/metadata/labels/x.io~1y", "value": "z"}),
                json!({"op": "add", "path": "/spec/a", "value": 2}),
            ]
        );
    }
}
