//! Writes conditions to objects.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::MANAGER;
use super::remote;
use crate::api::params::Params;
use crate::api::route::Target;
use crate::api::{Api, Call};
use crate::remote::Remote;
use crate::resources::Resource;

/// The conditions that an object is to get.
#[derive(Clone, Debug)]
pub struct Write {
    /// Under which name the object is known.
    pub key: Arc<str>,
    /// Its resource.
    pub resource: &'static Resource,
    /// The version in which it was read.
    pub version: &'static str,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The revision that the conditions are about: of any other one it is not known whether they hold.
    pub revision: String,
    /// All of its conditions.
    pub conditions: Vec<Value>,
}

/// What came of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done, or the object is another one by now, which will be heard of.
    Done,
    /// It is to be made again later.
    Failed,
    /// The server does not keep conditions of objects of this resource.
    NotKept,
}

/// Where conditions are written to.
#[derive(Clone, Debug)]
pub enum Writer {
    /// The store of this server.
    Store(Api),
    /// Another server.
    Remote(Arc<Remote>),
}

impl Writer {
    /// Writes the conditions of one object.
    pub async fn write(&self, write: &Write) -> Outcome {
        match self {
            Writer::Store(api) => store(api, write).await,
            Writer::Remote(server) => remote::write(server, write).await,
        }
    }
}

/// The merge patch of a status, for one revision only.
pub(super) fn patch(write: &Write) -> Value {
    json!({
        "metadata": {"resourceVersion": write.revision},
        "status": {"conditions": write.conditions},
    })
}

async fn store(api: &Api, write: &Write) -> Outcome {
    let call = Call {
        method: Method::PATCH,
        target: Target {
            resource: write.resource,
            version: write.version,
            namespace: write.namespace.clone(),
            name: Some(write.name.clone()),
            is_status: true,
        },
        params: Params::default(),
        content_type: "application/merge-patch+json".to_owned(),
        user_agent: MANAGER.to_owned(),
        body: Bytes::from(patch(write).to_string()),
    };
    match api.change(&call).await {
        Ok(_) => Outcome::Done,
        // The store itself says that it cannot be written, and when it can be again.
        Err(failure) if is_of_store(failure.code) => Outcome::Failed,
        Err(failure) => outcome(write, failure.code, &failure.message),
    }
}

fn is_of_store(code: StatusCode) -> bool {
    [
        StatusCode::INSUFFICIENT_STORAGE,
        StatusCode::SERVICE_UNAVAILABLE,
    ]
    .contains(&code)
}

/// What an error means for a write.
pub(super) fn outcome(write: &Write, code: StatusCode, message: &str) -> Outcome {
    if matches!(code, StatusCode::CONFLICT | StatusCode::NOT_FOUND) {
        return Outcome::Done;
    }
    tracing::warn!(
        object = %write.key, code = code.as_u16(), message, "the status of an object cannot be written"
    );
    Outcome::Failed
}
