//! Roles: text form and permissions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::resources;

/// Attributes of an object request that authorization decides by, named as in Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Kubernetes verb, such as `get` or `deletecollection`.
    pub verb: &'a str,
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Plural of the resource.
    pub resource: &'a str,
    /// Subresource: `status`, or empty.
    pub subresource: &'a str,
    /// Namespace; `None` for all namespaces and for cluster-scoped objects.
    pub namespace: Option<&'a str>,
}

/// Permissions of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Role {
    /// Every request.
    Admin,
    /// Reads of everything but Secrets, reads of Secrets in these namespaces, and writes of proxy reports.
    Proxy(Vec<String>),
    /// Reads of everything but Secrets.
    Reader,
    /// Reads of everything but Secrets, and writes in these namespaces.
    Writer(Vec<String>),
}

impl Role {
    /// Whether the role allows an object request. Every request and every access review is decided here.
    pub fn allows(&self, request: &Attributes<'_>) -> bool {
        if *self == Role::Admin {
            return true;
        }
        let served = resources::named(request.group, request.resource);
        let Some(resource) = served else {
            // `*` means every resource, which only an admin may use.
            return false;
        };
        let is_read = matches!(request.verb, "get" | "list" | "watch");
        let is_write = matches!(
            request.verb,
            "create" | "update" | "patch" | "delete" | "deletecollection"
        );
        let is_in = |namespaces: &[String]| {
            let namespace = request.namespace.filter(|_| resource.api.is_namespaced);
            namespace.is_some_and(|wanted| namespaces.iter().any(|named| named == wanted))
        };
        match self {
            Role::Admin => true,
            Role::Proxy(namespaces) if resource.is_secret() => is_read && is_in(namespaces),
            Role::Reader | Role::Writer(_) if resource.is_secret() => false,
            // Only proxies report what they have in effect.
            Role::Proxy(_) if resource.is_report() => is_read || is_write,
            Role::Writer(_) if resource.is_report() || resource.is_workload() => is_read,
            // Proxies open the addresses in the status of a Gateway, which only its controller assigns.
            Role::Writer(_) if resource.is_gateway() && request.subresource == "status" => is_read,
            Role::Proxy(_) | Role::Reader => is_read,
            Role::Writer(namespaces) => is_read || is_write && is_in(namespaces),
        }
    }

    /// Whether the role allows a request for a path without objects, such as `/version`.
    pub fn allows_path(&self, verb: &str, path: &str) -> bool {
        match self {
            Role::Admin => true,
            Role::Proxy(_) | Role::Writer(_) if path == "/metrics" => false,
            Role::Proxy(_) | Role::Reader | Role::Writer(_) => verb == "get",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Admin => f.pad("admin"),
            Role::Proxy(namespaces) if namespaces.is_empty() => f.pad("proxy"),
            Role::Proxy(namespaces) => f.pad(&format!("proxy:{}", namespaces.join(","))),
            Role::Reader => f.pad("reader"),
            Role::Writer(namespaces) => f.pad(&format!("writer:{}", namespaces.join(","))),
        }
    }
}

impl From<Role> for String {
    fn from(role: Role) -> String {
        role.to_string()
    }
}

impl TryFrom<String> for Role {
    type Error = String;

    fn try_from(text: String) -> Result<Role, String> {
        text.parse()
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        let (role, namespaces) = match text.split_once(':') {
            Some((role, list)) => (role, Some(list.split(',').map(str::to_owned).collect())),
            None => (text, None::<Vec<String>>),
        };
        let names = namespaces.as_deref().unwrap_or_default();
        if let Some(wrong) = names.iter().find(|name| !crate::object::is_name(name)) {
            return Err(format!(
                "role {text:?}: {wrong:?} is no name of a namespace"
            ));
        }
        match (role, namespaces) {
            ("admin", None) => Ok(Role::Admin),
            ("reader", None) => Ok(Role::Reader),
            ("proxy", namespaces) => Ok(Role::Proxy(namespaces.unwrap_or_default())),
            ("writer", Some(namespaces)) => Ok(Role::Writer(namespaces)),
            ("writer", None) => {
                Err("role \"writer\" lacks its namespaces: write writer:NAMESPACE,...".to_owned())
            }
            _ => Err(format!(
                "unknown role {text:?}: use admin, reader, proxy, proxy:NAMESPACE,... or writer:NAMESPACE,..."
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_as_they_are_written() {
        for text in ["admin", "reader", "proxy", "proxy:a,b", "writer:a"] {
            let role: Role = text.parse().unwrap();
            assert_eq!(role.to_string(), text);
            let stored = serde_json::to_string(&role).unwrap();
            assert_eq!(serde_json::from_str::<Role>(&stored).unwrap(), role);
        }
        for (text, why) in [
            ("writer", "lacks its namespaces"),
            ("writer:", "is no name of a namespace"),
            ("proxy:A", "is no name of a namespace"),
            ("reader:a", "unknown role"),
            ("root", "unknown role"),
        ] {
            let error = text.parse::<Role>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn role_decides_by_verb_kind_and_namespace() {
        let secret = |namespace| ("", "secrets", namespace);
        let gateway = |namespace| ("networking.istio.io", "gateways", namespace);
        let cluster = ("flomesh.io", "clusters", Some("a"));
        for (role, verb, (group, resource, namespace), expected) in [
            ("admin", "delete", secret(Some("a")), true),
            ("admin", "*", ("*", "*", None), true),
            ("reader", "watch", gateway(None), true),
            ("reader", "create", gateway(Some("a")), false),
            ("reader", "get", secret(Some("a")), false),
            ("reader", "get", ("*", "*", None), false),
            ("reader", "get", ("apps", "deployments", None), false),
            ("proxy", "watch", ("", "pods", None), true),
            ("writer:a", "create", ("", "pods", Some("a")), false),
            ("writer:a", "list", gateway(None), true),
            ("writer:a", "patch", gateway(Some("a")), true),
            ("writer:a", "patch", gateway(Some("b")), false),
            ("writer:a", "patch", gateway(None), false),
            ("writer:a", "*", gateway(Some("a")), false),
            ("writer:a", "create", secret(Some("a")), false),
            ("writer:a", "list", secret(Some("a")), false),
            ("writer:a", "update", cluster, false),
            ("proxy", "watch", gateway(None), true),
            ("proxy", "update", gateway(Some("a")), false),
            ("proxy", "update", ("strait.io", "proxies", Some("a")), true),
            (
                "writer:a",
                "update",
                ("strait.io", "proxies", Some("a")),
                false,
            ),
            ("reader", "list", ("strait.io", "proxies", None), true),
            ("proxy", "list", secret(Some("a")), false),
            ("proxy:a", "watch", secret(Some("a")), true),
            ("proxy:a", "watch", secret(Some("b")), false),
            ("proxy:a", "list", secret(None), false),
            ("proxy:a", "update", secret(Some("a")), false),
        ] {
            let attributes = Attributes {
                verb,
                group,
                resource,
                namespace,
                ..Attributes::default()
            };
            let allowed = role.parse::<Role>().unwrap().allows(&attributes);
            assert_eq!(allowed, expected, "{role} {verb} {resource} {namespace:?}");
        }
    }

    #[test]
    fn status_of_a_gateway_is_for_its_controller() {
        let patch = |group, subresource| Attributes {
            verb: "patch",
            group,
            resource: "gateways",
            subresource,
            namespace: Some("a"),
        };
        let writer = Role::Writer(vec!["a".to_owned()]);
        assert!(writer.allows(&patch("gateway.networking.k8s.io", "")));
        assert!(!writer.allows(&patch("gateway.networking.k8s.io", "status")));
        assert!(writer.allows(&patch("networking.istio.io", "status")));
        assert!(Role::Admin.allows(&patch("gateway.networking.k8s.io", "status")));
    }
}
