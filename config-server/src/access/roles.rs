//! Roles, and what they allow.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::api::Call;
use crate::resources::Resource;
use crate::status::Failure;

/// What a user may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything.
    Admin,
    /// Read everything but Secrets, and write it in these namespaces.
    Writer(Vec<String>),
    /// Read everything but Secrets.
    Reader,
    /// Read everything.
    Proxy,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Admin => f.pad("admin"),
            Role::Writer(namespaces) => f.pad(&format!("writer:{}", namespaces.join(","))),
            Role::Reader => f.pad("reader"),
            Role::Proxy => f.pad("proxy"),
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        let unknown =
            || format!("unknown role {text:?}: use admin, reader, proxy or writer:NAMESPACE,...");
        match text.split_once(':') {
            None if text == "admin" => Ok(Role::Admin),
            None if text == "reader" => Ok(Role::Reader),
            None if text == "proxy" => Ok(Role::Proxy),
            Some(("writer", namespaces)) => {
                let namespaces: Vec<String> = namespaces.split(',').map(str::to_owned).collect();
                let is_fine = namespaces.iter().all(|name| crate::object::is_name(name));
                if is_fine {
                    Ok(Role::Writer(namespaces))
                } else {
                    Err(unknown())
                }
            }
            _ => Err(unknown()),
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
        let target = &call.target;
        let verb = call.verb();
        let is_read = matches!(verb, "get" | "list" | "watch");
        let is_allowed = match &self.role {
            Role::Admin => true,
            Role::Proxy => is_read,
            Role::Reader => is_read && !target.resource.is_secret(),
            Role::Writer(_) if target.resource.is_secret() => false,
            Role::Writer(namespaces) => {
                let is_one = |namespace: &String| namespaces.contains(namespace);
                is_read || target.namespace.as_ref().is_some_and(is_one)
            }
        };
        if is_allowed {
            return Ok(());
        }
        let name = target.name.as_deref().unwrap_or("");
        Err(Failure::forbidden(
            target.resource,
            name,
            self.refusal(call, target.resource),
        ))
    }

    fn refusal(&self, call: &Call, resource: &Resource) -> String {
        let place = match &call.target.namespace {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".to_owned(),
        };
        format!(
            "User {:?} cannot {} resource {:?} in API group {:?} {place}",
            self.name,
            call.verb(),
            resource.api.plural,
            resource.group
        )
    }
}
