//! `serviceaccounts/token`: a token for a service account.

use http::{Method, StatusCode};

use super::{Call, Reply};
use crate::{
    gvk::GroupVersionKind,
    options::WriteOptions,
    status::{ApiError, Result},
};

impl Call {
    pub(crate) async fn handle_token(&mut self, method: &Method) -> Result<Reply> {
        if method != Method::POST {
            return Err(ApiError::method_not_allowed());
        }
        let options = WriteOptions::parse(&self.query, "CreateOptions")?;
        let mut request = self.read_loose()?;
        let kind = GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest");
        self.admit_given(&kind, &mut request, &options).await?;
        let info = &self.context.info;
        let access = self.server.access();
        let prepared = access.prepare_token(&info.namespace, &info.name, request)?;
        self.review_given(&kind, &prepared.request, &options).await?;
        let issued = self.server.access().issue_token(prepared)?;
        Ok(Reply::json(StatusCode::CREATED, issued))
    }
}
