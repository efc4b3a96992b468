//! Security policies of listeners.

use std::sync::Arc;

use super::Authentication;
use traffic::authz::Authorization;

/// Security policies for the traffic of listeners.
#[derive(Clone, Debug, Default)]
pub struct ListenerPolicies {
    /// Policies that allow or deny. `None` without any.
    pub authorization: Option<Arc<Authorization>>,
    /// Accepted tokens. `None` if none are looked at.
    pub authentication: Option<Arc<Authentication>>,
}

impl ListenerPolicies {
    /// Whether there are no policies.
    pub fn is_empty(&self) -> bool {
        self.authorization.is_none() && self.authentication.is_none()
    }

    /// Whether requests lose headers that only tokens may set.
    pub fn sets_headers(&self) -> bool {
        let authentication = self.authentication.as_ref();
        authentication.is_some_and(|tokens| !tokens.outputs.is_empty())
    }

    /// Whether both have been made by the same compile.
    pub fn is_same(&self, other: &Self) -> bool {
        fn address<T>(one: &Option<Arc<T>>) -> Option<*const T> {
            one.as_ref().map(Arc::as_ptr)
        }
        address(&self.authorization) == address(&other.authorization)
            && address(&self.authentication) == address(&other.authentication)
    }
}
