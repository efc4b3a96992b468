//! Routing of request paths.

use super::reviews::{self, Review};
use crate::object::is_name;
use crate::resources::{self, Resource};
use crate::status::Failure;

/// Destination of a request path.
#[derive(Clone, Debug)]
pub enum Route {
    /// Health checks: `/healthz`, `/livez`, `/readyz`.
    Health,
    /// Page for browsers, or one of its files: `/ui`.
    Page(String),
    /// `/metrics`
    Metrics,
    /// `/version`
    Version,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/v1` and `/apis/GROUP/VERSION`
    Resources {
        /// API group; empty for the core group.
        group: String,
        /// API version.
        version: String,
    },
    /// `/openapi/v2`
    OpenApi2,
    /// `/openapi/v3`
    OpenApi3,
    /// `/openapi/v3/` followed by a group version
    OpenApi3Of(String),
    /// Access review.
    Review(Review),
    /// Backup of the store, as one file.
    Backup,
    /// Roots of the identities that the server issues.
    IdentityRoots,
    /// Commands about the CA of identities.
    Identities,
    /// Objects of a resource, or one object.
    Objects(Target),
}

/// Objects that a path names.
#[derive(Clone, Debug)]
pub struct Target {
    /// Resource of the objects.
    pub resource: &'static Resource,
    /// API version of the request.
    pub version: &'static str,
    /// Namespace; `None` for all namespaces and for cluster-scoped objects.
    pub namespace: Option<String>,
    /// Name of a single object.
    pub name: Option<String>,
    /// Whether the path names the `status` subresource.
    pub is_status: bool,
}

impl Target {
    /// Returns the `apiVersion` of the request.
    pub fn api_version(&self) -> String {
        self.resource.api_version(self.version)
    }

    /// Returns the store key of an object of that name.
    pub fn key(&self, name: &str) -> String {
        self.resource.key(self.namespace.as_deref(), name)
    }

    /// Returns the prefix of the store keys of these objects.
    pub fn prefix(&self) -> String {
        self.resource.prefix(self.namespace.as_deref())
    }
}

/// Parses a path.
///
/// # Errors
/// 404 if the path is unknown.
pub fn route(path: &str) -> Result<Route, Failure> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    match &*segments {
        ["healthz" | "livez" | "readyz", ..] => Ok(Route::Health),
        ["ui", ..] => Ok(Route::Page(path.to_owned())),
        ["metrics"] => Ok(Route::Metrics),
        ["version"] => Ok(Route::Version),
        ["strait", "backup"] => Ok(Route::Backup),
        ["strait", "ca"] => Ok(Route::IdentityRoots),
        ["strait", "identity"] => Ok(Route::Identities),
        ["api"] => Ok(Route::CoreVersions),
        ["apis"] => Ok(Route::Groups),
        ["openapi", "v2"] => Ok(Route::OpenApi2),
        ["openapi", "v3"] => Ok(Route::OpenApi3),
        ["openapi", "v3", of @ ..] => Ok(Route::OpenApi3Of(of.join("/"))),
        ["api", version] => Ok(Route::Resources {
            group: String::new(),
            version: (*version).to_owned(),
        }),
        ["apis", group] => Ok(Route::Group((*group).to_owned())),
        ["apis", group, version] => Ok(Route::Resources {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
        }),
        ["api", version, rest @ ..] => objects("", version, rest),
        ["apis", group, version, rest @ ..] => {
            let review = rest.first().filter(|_| rest.len() == 1);
            match review.and_then(|plural| reviews::find(group, version, plural)) {
                Some(review) => Ok(Route::Review(review)),
                None => objects(group, version, rest),
            }
        }
        _ => Err(Failure::unknown_path()),
    }
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Result<Route, Failure> {
    let (namespace, plural, rest) = match rest {
        ["namespaces", namespace, plural, rest @ ..]
            if !(group.is_empty() && *plural == "status") =>
        {
            (Some(*namespace), *plural, rest)
        }
        [plural, rest @ ..] => (None, *plural, rest),
        [] => return Err(Failure::unknown_path()),
    };
    let found = resources::find(group, version, plural);
    let (resource, version) = found.ok_or_else(Failure::unknown_path)?;
    let (name, is_status) = match rest {
        [] => (None, false),
        [name] => (Some(*name), false),
        [name, "status"] if resource.api.has_status => (Some(*name), true),
        _ => return Err(Failure::unknown_path()),
    };
    let is_namespaced = resource.api.is_namespaced;
    let fits = match namespace {
        Some(_) => is_namespaced,
        None => !is_namespaced || name.is_none(),
    };
    if !fits || namespace.is_some_and(|namespace| !is_name(namespace)) {
        return Err(Failure::unknown_path());
    }
    if let Some(name) = name.filter(|name| !is_name(name)) {
        return Err(Failure::not_found(resource, name));
    }
    Ok(Route::Objects(Target {
        resource,
        version,
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        is_status,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Option<(String, Option<String>, Option<String>, bool)> {
        match route(path) {
            Ok(Route::Objects(t)) => {
                Some((t.resource.qualified(), t.namespace, t.name, t.is_status))
            }
            _ => None,
        }
    }

    #[test]
    fn paths_name_objects() {
        let some = |text: &str| Some(text.to_owned());
        for (path, expected) in [
            (
                "/api/v1/services",
                ("services".to_owned(), None, None, false),
            ),
            (
                "/api/v1/namespaces",
                ("namespaces".to_owned(), None, None, false),
            ),
            (
                "/api/v1/namespaces/a",
                ("namespaces".to_owned(), None, some("a"), false),
            ),
            (
                "/api/v1/namespaces/a/status",
                ("namespaces".to_owned(), None, some("a"), true),
            ),
            (
                "/api/v1/namespaces/a/services/b",
                ("services".to_owned(), some("a"), some("b"), false),
            ),
            (
                "/apis/flomesh.io/v1alpha1/namespaces/a/serviceimports/b/status",
                (
                    "serviceimports.flomesh.io".to_owned(),
                    some("a"),
                    some("b"),
                    true,
                ),
            ),
            (
                "/apis/flomesh.io/v1alpha1/clusters/b",
                ("clusters.flomesh.io".to_owned(), None, some("b"), false),
            ),
        ] {
            assert_eq!(target(path), Some(expected), "{path}");
        }
        for path in [
            "/api/v1/services/b",
            "/apis/flomesh.io/v1alpha1/namespaces/a/clusters/b",
            "/api/v1/namespaces/a/secrets/b/status",
            "/api/v1/namespaces/a/services/b/status/x",
            "/api/v1/namespaces/A/services",
            "/api/v1/pods",
            "/",
        ] {
            assert_eq!(target(path), None, "{path}");
        }
    }
}
