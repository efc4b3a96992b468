//! Dispatch of writes by method and path.

use http::Method;

use super::{Api, Call, Change};
use crate::status::Failure;

impl Api {
    /// Executes a write.
    ///
    /// # Errors
    /// 404, 405, 409, 422 and others, as in Kubernetes.
    pub async fn change(&self, call: &Call) -> Result<Change, Failure> {
        let target = &call.target;
        match (&call.method, &target.name, target.is_status) {
            (&Method::POST, None, _) => self.create(call).await,
            (&Method::PUT, Some(name), _) => self.replace(call, name).await,
            (&Method::PATCH, Some(name), _) => self.patch(call, name).await,
            (&Method::DELETE, Some(name), false) => self.delete(call, name).await,
            (&Method::DELETE, None, false) => self.delete_collection(call).await,
            _ => Err(Failure::method_not_allowed()),
        }
    }
}
