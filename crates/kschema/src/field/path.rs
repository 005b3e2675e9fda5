//! Where in an object a field is.

use std::fmt;

/// The path of a field from the root of an object, such as `spec.containers[0].name` or
/// `metadata.labels[foo]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(String);

impl Path {
    /// A path of one field.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The path of the whole object. It prints as `<nil>`; its children print as plain names.
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// The field `name` of this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() {
            return Self(name.to_owned());
        }
        let mut path = String::with_capacity(self.0.len() + 1 + name.len());
        path.push_str(&self.0);
        path.push('.');
        path.push_str(name);
        Self(path)
    }

    /// The item `index` of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The entry `key` of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// Whether this is the path of the whole object.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path as written; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

impl From<&str> for Path {
    /// Takes a path already written out.
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Path {
    /// Takes a path already written out.
    fn from(text: String) -> Self {
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_as_written_in_messages() {
        let spec = Path::new("spec");
        let cases = [
            (Path::root(), "<nil>"),
            (Path::root().child("spec"), "spec"),
            (spec.child("containers").index(0).child("name"), "spec.containers[0].name"),
            (Path::new("metadata").child("labels").key("a/b"), "metadata.labels[a/b]"),
            (Path::root().index(3), "[3]"),
        ];
        for (path, expected) in cases {
            assert_eq!(path.to_string(), expected);
        }
    }
}
