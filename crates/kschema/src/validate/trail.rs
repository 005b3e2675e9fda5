//! Where a check is, without writing it out until there is something to say.

use std::fmt;

/// A path as the validator writes it; it borrows its parent.
pub(crate) struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Root,
    Property(&'a str),
    Additional(&'a str),
    Item(usize),
}

impl<'a> Trail<'a> {
    pub(crate) fn root() -> Self {
        Self { parent: None, step: Step::Root }
    }

    pub(crate) fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    /// A property that the schema lists.
    pub(crate) fn property(&'a self, name: &'a str) -> Trail<'a> {
        Self { parent: Some(self), step: Step::Property(name) }
    }

    /// A property that the schema does not list; at the root it is written with a dot.
    pub(crate) fn additional(&'a self, name: &'a str) -> Trail<'a> {
        Self { parent: Some(self), step: Step::Additional(name) }
    }

    pub(crate) fn item(&'a self, index: usize) -> Trail<'a> {
        Self { parent: Some(self), step: Step::Item(index) }
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Property(name) if self.parent.is_none_or(Trail::is_root) => f.write_str(name),
            Step::Property(name) | Step::Additional(name) => write!(f, ".{name}"),
            Step::Item(index) => write!(f, "[{index}]"),
        }
    }
}
