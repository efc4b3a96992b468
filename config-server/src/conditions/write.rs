//! One write of conditions to an object, and its outcome.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use crate::resources::Resource;

/// The field manager of what is written here.
pub const MANAGER: &str = "strait-control";

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

/// Outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done, or the object is another one by now, which will be heard of.
    Done,
    /// It is to be made again later.
    Failed,
    /// The server does not keep conditions of objects of this resource.
    NotKept,
}

/// The merge patch of a status, for one revision only.
pub(super) fn patch(write: &Write) -> Value {
    json!({
        "metadata": {"resourceVersion": write.revision},
        "status": {"conditions": write.conditions},
    })
}

/// Outcome of a write that failed with this error.
pub(super) fn outcome(write: &Write, code: StatusCode, message: &str) -> Outcome {
    if matches!(code, StatusCode::CONFLICT | StatusCode::NOT_FOUND) {
        return Outcome::Done;
    }
    tracing::warn!(
        object = %write.key, code = code.as_u16(), message, "the status of an object cannot be written"
    );
    Outcome::Failed
}
