//! Delegates: VirtualServices that lend their rules to rules of others.

use std::sync::Arc;

use super::View;
use crate::kind::Name;
use crate::resource::Object;
use crate::resource::istio::VirtualService;

/// Reason that a delegate lends no rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableDelegate {
    /// It has hosts of its own, so it is no delegate.
    HasHosts,
    /// There is no such VirtualService.
    Missing,
    /// It is not exported to the namespace of its root.
    NotExported,
}

/// Returns the delegate that a rule in `namespace` names.
///
/// # Errors
///
/// Reason that it lends no rules to that namespace.
pub fn delegate<'a>(
    view: impl Into<View<'a>>,
    name: &Name,
    namespace: &str,
) -> Result<&'a Arc<Object<VirtualService>>, UnusableDelegate> {
    match view.into().get::<VirtualService>(name) {
        None => Err(UnusableDelegate::Missing),
        Some(object) if !object.spec.is_delegate() => Err(UnusableDelegate::HasHosts),
        Some(object) if !object.spec.export_to.includes(namespace) => {
            Err(UnusableDelegate::NotExported)
        }
        Some(object) => Ok(object),
    }
}
