//! Writes conditions to objects.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};

use super::remote;
use super::write::{MANAGER, Outcome, Write, outcome, patch};
use crate::api::params::Params;
use crate::api::route::Target;
use crate::api::{Api, Call};
use crate::remote::Remote;

/// Destination of condition writes.
#[derive(Clone, Debug)]
pub enum Writer {
    /// Store of this server.
    Store(Api),
    /// API server of Kubernetes.
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
        // The store logs its own failures and recovery.
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
