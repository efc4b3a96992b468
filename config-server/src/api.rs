//! The API: from a request of a known user to an answer.

mod apply;
pub mod changes;
pub mod collector;
pub mod decode;
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

/// The largest object that is stored.
pub const OBJECT_BYTES_MAX: usize = 1_500_000;
/// How often a write starts again because another one came first.
const ATTEMPTS_MAX: usize = 50;

/// A request for objects.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// What it is about.
    pub target: Target,
    /// The query.
    pub params: Params,
    /// Of which type the body is.
    pub content_type: String,
    /// Who sent it, by its own account.
    pub user_agent: String,
    /// The body.
    pub body: Bytes,
}

impl Call {
    /// What Kubernetes calls what is asked, such as `deletecollection`.
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

    /// Checks that a user may make this call.
    ///
    /// # Errors
    /// 403 if not.
    pub fn check(&self, user: &User) -> Result<(), Failure> {
        let target = &self.target;
        let attributes = Attributes {
            verb: self.verb(),
            group: target.resource.group,
            resource: target.resource.api.plural,
            subresource: if target.is_status { "status" } else { "" },
            namespace: target.namespace.as_deref(),
        };
        if user.role.allows(&attributes) {
            return Ok(());
        }
        let name = target.name.as_deref().unwrap_or("");
        // Kubernetes takes the name of a Namespace for the namespace of the request.
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

/// What a write did, with its answer.
#[derive(Debug)]
pub struct Change {
    /// The answer.
    pub answer: Answer,
    /// The name of the object; empty for a collection.
    pub name: String,
    /// The revision before; none if there was no object.
    pub before: Option<Revision>,
    /// The revision after; none if nothing was stored.
    pub after: Option<Revision>,
}

/// The API over a store.
#[derive(Clone)]
pub struct Api {
    /// The store.
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
    /// The API over that store.
    pub fn new(store: Arc<dyn Store>) -> Api {
        Api {
            store,
            owners: Arc::default(),
            lines: Arc::default(),
        }
    }

    /// The object of that name.
    ///
    /// # Errors
    /// 404 if there is none.
    pub async fn entry(&self, target: &Target, name: &str) -> Result<Entry, Failure> {
        let key = target.key(name);
        let (entry, _) = self.store.get(&key).await?;
        entry.ok_or_else(|| Failure::not_found(target.resource, name))
    }

    /// Stores an object if its key is as expected. The answer is the object with its new revision; none if the key was
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

/// Sets the revision of an object.
pub(crate) fn set_revision(object: &mut Value, revision: Revision) {
    let metadata = object::metadata_mut(object);
    metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
}
