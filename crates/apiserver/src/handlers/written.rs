//! What a write leaves behind, and how an object is made ready for it.

use fleetwright_kstore::Body as StoreBody;
use http::StatusCode;
use serde_json::Value;

use super::{Body, Call, Reply, Shape, watch};
use crate::{
    convert, object,
    status::{ApiError, Result},
    storage::{self, StoredObject},
};

/// An object after a write.
pub(crate) enum Written {
    /// As it is stored now.
    Stored(StoredObject),
    /// As it would be, or as it last was: a dry run, or the removal of the last finalizer.
    Shown(Value),
}

/// What becomes of `managedFields` when an object is too large with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owners {
    /// They are left out, as they can be made again.
    Forgotten,
    /// They stay, and the object is refused: nobody applies without them.
    Kept,
}

impl Call {
    /// Answers with a written object in the shape that the client asked for.
    pub(crate) fn answer(&self, status: StatusCode, written: Written) -> Result<Reply> {
        match written {
            Written::Stored(stored)
                if self.shape == Shape::Plain && self.is_in_version(&stored) =>
            {
                let pieces = watch::typed(&self.resource, stored.json.clone());
                Ok(Reply { status, body: Body::Pieces(pieces) })
            }
            other => Ok(self.reply(status, self.shown(other)?)),
        }
    }

    /// A written object in the version of this request.
    pub(crate) fn shown(&self, written: Written) -> Result<Value> {
        match written {
            Written::Stored(stored) => self.read(&stored),
            Written::Shown(value) => Ok(value),
        }
    }

    /// Makes an object ready for the store, in the version that is stored.
    pub(crate) fn store_body(&self, mut value: Value, owners: Owners) -> Result<StoreBody> {
        convert::to_stored(&self.resource, &mut value);
        let mut body = storage::body(&value)?;
        let most = self.server.limits().object;
        if size(&body) > most && owners == Owners::Forgotten {
            object::remove(&mut value, &["metadata", "managedFields"]);
            body = storage::body(&value)?;
        }
        if size(&body) > most {
            return Err(ApiError::too_large_to_store(size(&body)));
        }
        Ok(body)
    }
}

fn size(body: &StoreBody) -> usize {
    body.head.len() + body.tail.len()
}
