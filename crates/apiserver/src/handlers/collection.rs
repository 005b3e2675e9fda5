//! DELETE of a collection.

use http::StatusCode;
use serde_json::json;

use super::{Call, Reply};
use crate::{
    options::{DeleteOptions, ListOptions},
    status::Result,
};

impl Call {
    pub(crate) async fn delete_collection(&mut self) -> Result<Reply> {
        let list = ListOptions::parse(&self.query, false)?;
        let body = self.delete_body()?;
        let options = DeleteOptions::parse(body.as_ref(), &self.query)?;
        let page = self.page(&list)?;
        let mut items = Vec::with_capacity(page.items.len());
        for stored in page.items {
            let mut object = self.read(&stored)?;
            match self.delete_object(stored, &options).await {
                Ok(_) => {
                    if !self.resource.is_custom()
                        && let Some(map) = object.as_object_mut()
                    {
                        map.remove("apiVersion");
                        map.remove("kind");
                    }
                    items.push(object);
                }
                // Somebody else was faster.
                Err(error) if error.code() == StatusCode::NOT_FOUND => {}
                Err(error) => return Err(error),
            }
        }
        let value = json!({
            "kind": &*self.resource.list_kind,
            "apiVersion": self.resource.group_version().to_string(),
            "metadata": {"resourceVersion": page.revision.to_string()},
            "items": items,
        });
        Ok(Reply::json(StatusCode::OK, value))
    }
}
