//! Users, and the decision about each request of theirs.

use http::StatusCode;

use super::Role;
use crate::api::Call;
use crate::status::Failure;

/// What a request for objects asks for, in the words of Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Such as `get` or `deletecollection`.
    pub verb: &'a str,
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural.
    pub resource: &'a str,
    /// `status`, or empty.
    pub subresource: &'a str,
    /// The namespace; none for all of them, and for objects outside of namespaces.
    pub namespace: Option<&'a str>,
}

impl<'a> Attributes<'a> {
    fn of(call: &'a Call) -> Attributes<'a> {
        let target = &call.target;
        Attributes {
            verb: call.verb(),
            group: target.resource.group,
            resource: target.resource.api.plural,
            subresource: if target.is_status { "status" } else { "" },
            namespace: target.namespace.as_deref(),
        }
    }
}

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name, for messages and the audit log.
    pub name: String,
    /// What is allowed.
    pub role: Role,
}

impl User {
    /// Checks that the user may make this call.
    ///
    /// # Errors
    /// 403 if not.
    pub fn check(&self, call: &Call) -> Result<(), Failure> {
        let attributes = Attributes::of(call);
        if self.role.allows(&attributes) {
            return Ok(());
        }
        let target = &call.target;
        let name = target.name.as_deref().unwrap_or("");
        // Kubernetes takes the name of a Namespace for the namespace of the request.
        let namespace = match attributes.namespace {
            None if target.resource.kind == "Namespace" => target.name.as_deref(),
            other => other,
        };
        let why = self.refusal(&Attributes {
            namespace,
            ..attributes
        });
        Err(Failure::forbidden(target.resource, name, why))
    }

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
    fn refusal(&self, request: &Attributes<'_>) -> String {
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
