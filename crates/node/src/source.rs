//! Where notices come from: one source for each cloud.

use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::{notice::Notice, trouble::Trouble};

/// What a look at a cloud's metadata gave. Parts of it can fail by themselves.
#[derive(Debug, Default)]
pub struct Looked {
    /// The notices that stand.
    pub notices: Vec<Notice>,
    /// What could not be found out.
    pub troubles: Vec<Trouble>,
}

impl Looked {
    /// Adds what one question gave.
    pub fn add(&mut self, found: Result<impl IntoIterator<Item = Notice>, Trouble>) {
        match found {
            Ok(notices) => self.notices.extend(notices),
            Err(trouble) => self.troubles.push(trouble),
        }
    }
}

/// A source of notices.
pub trait Source: Send {
    /// Looks once, within seconds, whatever the metadata service does. `now` is for notices that
    /// say that the instance goes and not when.
    fn look(&mut self, now: Timestamp) -> BoxFuture<'_, Looked>;

    /// As users name the cloud.
    fn cloud(&self) -> &'static str;
}
