//! Write of the status of one object, and its outcome.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use crate::resources::Resource;

/// Field manager of condition writes.
pub const MANAGER: &str = "strait-control";

/// Desired status of an object.
#[derive(Clone, Debug)]
pub struct Write {
    /// Key of the object in the engine.
    pub key: Arc<str>,
    /// Resource of the object.
    pub resource: &'static Resource,
    /// API version of the object as read.
    pub version: &'static str,
    /// Namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Revision that the status applies to, required as a precondition.
    pub revision: String,
    /// Fields of the status that change, with their new values.
    pub status: Value,
}

/// Outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success, or a conflict or deletion, which arrives as a change.
    Done,
    /// Failure, to be retried.
    Failed,
    /// API server that does not store the status of this resource.
    NotKept,
}

/// Returns the merge patch of a status, with the revision as a precondition.
pub(super) fn patch(write: &Write) -> Value {
    json!({
        "metadata": {"resourceVersion": write.revision},
        "status": write.status,
    })
}

/// Returns the outcome of a write that failed with this error.
pub(super) fn outcome(write: &Write, code: StatusCode, message: &str) -> Outcome {
    if matches!(code, StatusCode::CONFLICT | StatusCode::NOT_FOUND) {
        return Outcome::Done;
    }
    tracing::warn!(
        object = %write.key, code = code.as_u16(), message, "the status of an object cannot be written"
    );
    Outcome::Failed
}
