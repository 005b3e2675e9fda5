//! `serviceaccounts/token`: a token for a service account.

use http::{Method, StatusCode};

use super::{Call, Reply};
use crate::status::{ApiError, Result};

impl Call {
    pub(crate) fn handle_token(&mut self, method: &Method) -> Result<Reply> {
        if method != Method::POST {
            return Err(ApiError::method_not_allowed());
        }
        let request = self.read_loose()?;
        let info = &self.context.info;
        let issued = self.server.access().issue_token(&info.namespace, &info.name, &request)?;
        Ok(Reply::json(StatusCode::CREATED, issued))
    }
}
