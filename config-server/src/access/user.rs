//! Users, and what they may ask for.

use http::StatusCode;

use super::{Attributes, Role};
use crate::status::Failure;

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name, for messages and the audit log.
    pub name: String,
    /// What is allowed.
    pub role: Role,
}

impl User {
    /// The name by which the reports of its proxies are tied to the user; none for one that may write every report.
    pub fn subject(&self) -> Option<&str> {
        (self.role != Role::Admin).then_some(&*self.name)
    }

    /// Checks that the user may send a request to a path that is about no object.
    ///
    /// # Errors
    /// 403 if not.
    pub fn check_path(&self, verb: &str, path: &str) -> Result<(), Failure> {
        if self.role.allows_path(verb, path) {
            return Ok(());
        }
        let User { name, .. } = self;
        let message = format!("forbidden: User {name:?} cannot {verb} path {path:?}");
        Err(Failure::new(StatusCode::FORBIDDEN, "Forbidden", message))
    }

    /// Why a request for objects is not allowed.
    pub(crate) fn refusal(&self, request: &Attributes<'_>) -> String {
        let Attributes {
            verb,
            group,
            resource,
            subresource,
            namespace,
        } = request;
        let place = match namespace {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".to_owned(),
        };
        let slash = if subresource.is_empty() { "" } else { "/" };
        format!(
            "User {:?} cannot {verb} resource \"{resource}{slash}{subresource}\" in API group {group:?} {place}",
            self.name
        )
    }

    /// The groups of the user, as Kubernetes tells them: the role, and that it is known.
    pub fn groups(&self) -> Vec<String> {
        vec![
            format!("strait:{}", self.role),
            "system:authenticated".to_owned(),
        ]
    }
}
