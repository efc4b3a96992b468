//! When a request is tried again: parsed conditions, numbers and pauses; pure values.
//!
//! `exchange` runs the attempts in a plain loop and asks here after each of them. Nothing here keeps count: the loop says
//! how often it has tried, and passes random numbers in.
//! Source: VirtualService `http[].retries`, and the `x-envoy-` request controls of trusted clients.

pub mod back_off;
pub mod client;
pub mod conditions;

use std::time::Duration;

pub use back_off::BackOff;
pub use client::Controls;
pub use conditions::{Condition, Conditions, Reason};

/// Retries of a rule that says nothing about them: what the mesh does.
pub const ATTEMPTS_DEFAULT: u32 = 2;

/// Retries that a trusted client gets who asks for some and does not say how many.
pub const ATTEMPTS_CLIENT: u32 = 1;

/// Whether and how a request is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Retries.
    pub attempts: u32,
    /// How long one try may take, from when it has a connection.
    ///
    /// Unit: time, > 0. Default: as long as the route's timeout.
    pub per_try_timeout: Option<Duration>,
    /// What is tried again.
    pub conditions: Conditions,
    /// Pauses between attempts.
    pub back_off: BackOff,
    /// Whether an endpoint that was not tried yet is preferred.
    ///
    /// Source: `retryIgnorePreviousHosts`; true unless written.
    pub avoid_tried: Option<bool>,
    /// Whether the priorities of the endpoints that were tried are left out after every two attempts.
    ///
    /// Source: `retryRemoteLocalities`. When no other priority is left, all of them count again.
    pub avoid_priorities: bool,
    /// Whether it is the default retry policy of the mesh.
    pub implied: bool,
}

impl RetryPolicy {
    /// What a rule without `retries` does: try again what no endpoint has seen, or what a gRPC server says it has not
    /// processed. `retry_503` adds plain 503 responses, as older Istio had it.
    pub fn mesh_default(retry_503: bool) -> Self {
        let mut conditions = Conditions::default();
        for condition in [
            Condition::ConnectFailure,
            Condition::RefusedStream,
            Condition::Unavailable,
            Condition::Cancelled,
        ] {
            conditions.insert(condition);
        }
        if retry_503 {
            conditions.insert_status(503);
        }
        Self {
            attempts: ATTEMPTS_DEFAULT,
            per_try_timeout: None,
            conditions,
            back_off: BackOff::default(),
            avoid_tried: None,
            avoid_priorities: false,
            implied: true,
        }
    }

    /// What a rule whose retries are off begins with when a trusted client asks for some.
    fn off() -> Self {
        Self {
            attempts: ATTEMPTS_CLIENT,
            conditions: Conditions::default(),
            implied: false,
            ..Self::mesh_default(false)
        }
    }
}

#[cfg(test)]
mod tests;
