//! Kubernetes API of an authenticated user: answers requests for objects.

mod apply;
pub mod changes;
pub mod collector;
pub mod decode;
pub mod definitions;
pub mod deletion;
pub mod discovery;
mod duplicates;
pub mod lines;
pub mod list;
pub mod metadata;
mod namespaces;
pub mod openapi;
mod operations;
mod owners;
pub mod params;
pub mod protobuf;
pub mod respond;
pub mod reviews;
pub mod route;
mod strategic;
pub mod table;
mod typed;
pub mod validation;
pub mod watch;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::access::{Attributes, User};
use crate::object;
use crate::status::Failure;
use crate::store::{Entry, Expected, Revision, Store, Written};
use lines::Lines;
pub use namespaces::DEFAULT;
use owners::Owners;
use params::Params;
use respond::Answer;
use route::Target;

/// Maximum size of a stored object, in bytes.
pub const OBJECT_BYTES_MAX: usize = 1_500_000;
/// Maximum number of attempts of a write that conflicts with other writes.
const ATTEMPTS_MAX: usize = 50;

/// Request for objects.
#[derive(Clone, Debug)]
pub struct Call {
    /// HTTP method.
    pub method: Method,
    /// Objects that the path names.
    pub target: Target,
    /// Query parameters.
    pub params: Params,
    /// Media type of the body.
    pub content_type: String,
    /// `User-Agent` header.
    pub user_agent: String,
    /// Request body.
    pub body: Bytes,
}

impl Call {
    /// Returns the Kubernetes verb of the request, such as `deletecollection`.
    pub fn verb(&self) -> &'static str {
        let is_one = self.target.name.is_some();
        let is_watch = self.params.flag("watch").unwrap_or(false);
        match (&self.method, is_one) {
            (&Method::GET, true) => "get",
            (&Method::GET, false) if is_watch => "watch",
            (&Method::GET, false) => "list",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, true) => "delete",
            (&Method::DELETE, false) => "deletecollection",
            _ => "",
        }
    }

    /// Checks that a user may make this request.
    ///
    /// # Errors
    /// 403 if the user's role does not allow it.
    pub fn check(&self, user: &User) -> Result<(), Failure> {
        let target = &self.target;
        let attributes = Attributes {
            verb: self.verb(),
            group: target.resource.group,
            resource: target.resource.api.plural,
            subresource: if target.is_status { "status" } else { "" },
            namespace: target.namespace.as_deref(),
        };
        let is_read = matches!(attributes.verb, "get" | "list" | "watch");
        let is_of_another = target.resource.is_report()
            && !is_read
            && user.namespace.is_some()
            && user.namespace != target.namespace;
        if user.role.allows(&attributes) && !is_of_another {
            return Ok(());
        }
        let name = target.name.as_deref().unwrap_or("");
        // Kubernetes uses the name of a Namespace as the namespace of the request.
        let namespace = match attributes.namespace {
            None if target.resource.kind == "Namespace" => target.name.as_deref(),
            other => other,
        };
        let why = user.refusal(&Attributes {
            namespace,
            ..attributes
        });
        Err(Failure::forbidden(target.resource, name, why))
    }
}

/// Result of a write.
#[derive(Debug)]
pub struct Change {
    /// Response to the client.
    pub answer: Answer,
    /// Name of the object; empty for a collection.
    pub name: String,
    /// Revision before the write; `None` if there was no object.
    pub before: Option<Revision>,
    /// Revision after the write; `None` if nothing was stored.
    pub after: Option<Revision>,
}

/// Kubernetes API over a store.
#[derive(Clone)]
pub struct Api {
    /// Storage of the objects.
    pub store: Arc<dyn Store>,
    owners: Arc<Owners>,
    lines: Arc<Lines>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Api {
    /// Returns the API over a store.
    pub fn new(store: Arc<dyn Store>) -> Api {
        Api {
            store,
            owners: Arc::default(),
            lines: Arc::default(),
        }
    }

    /// Returns the stored object of that name.
    ///
    /// # Errors
    /// 404 if there is no such object.
    pub async fn entry(&self, target: &Target, name: &str) -> Result<Entry, Failure> {
        let key = target.key(name);
        let (entry, _) = self.store.get(&key).await?;
        entry.ok_or_else(|| Failure::not_found(target.resource, name))
    }

    /// Stores an object if its key is as expected. Returns the object with its new revision, or `None` if the key was
    /// not as expected.
    pub(crate) async fn put(
        &self,
        key: String,
        expected: Expected,
        object: &mut Value,
    ) -> Result<Option<Revision>, Failure> {
        let value = object::encode(object);
        if value.len() > OBJECT_BYTES_MAX {
            let message = format!(
                "Request entity too large: limit is {OBJECT_BYTES_MAX} bytes, the object has {}",
                value.len()
            );
            let code = http::StatusCode::PAYLOAD_TOO_LARGE;
            return Err(Failure::new(code, "RequestEntityTooLarge", message));
        }
        match self.store.write(key, expected, Some(value)).await? {
            Written::Done(revision) => {
                set_revision(object, revision);
                Ok(Some(revision))
            }
            Written::Mismatch => Ok(None),
        }
    }
}

/// Sets the `resourceVersion` of an object.
pub(crate) fn set_revision(object: &mut Value, revision: Revision) {
    let metadata = object::metadata_mut(object);
    metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
}
