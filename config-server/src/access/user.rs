//! Authenticated users and their permissions.

use http::StatusCode;

use super::{Attributes, Role};
use crate::status::Failure;

/// Authenticated user of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name, for messages and the audit log.
    pub name: String,
    /// Role, which decides the requests that are allowed.
    pub role: Role,
    /// Namespace of a proxy's service account, beside which it may not report; `None` without one.
    pub namespace: Option<String>,
}

impl User {
    /// Returns the name that owns this user's proxy reports; `None` for an admin, who may write every report.
    pub fn subject(&self) -> Option<&str> {
        (self.role != Role::Admin).then_some(&*self.name)
    }

    /// Checks that the user may request a path without objects.
    ///
    /// # Errors
    /// 403 if the role does not allow the request.
    pub fn check_path(&self, verb: &str, path: &str) -> Result<(), Failure> {
        if self.role.allows_path(verb, path) {
            return Ok(());
        }
        let User { name, .. } = self;
        let message = format!("forbidden: User {name:?} cannot {verb} path {path:?}");
        Err(Failure::new(StatusCode::FORBIDDEN, "Forbidden", message))
    }

    /// Returns the message of a 403 for an object request.
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

    /// Returns the groups of the user in access reviews: `strait:ROLE` and `system:authenticated`.
    pub fn groups(&self) -> Vec<String> {
        vec![
            format!("strait:{}", self.role),
            "system:authenticated".to_owned(),
        ]
    }
}
