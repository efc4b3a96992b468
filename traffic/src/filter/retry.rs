//! Retry policies: conditions, limits and back-off; pure values.
//!
//! This module keeps no state: the retry machine of `exchange` passes the number of a retry and the random numbers in.
//! Source: VirtualService `http[].retries`, and the `x-envoy-` request controls of trusted clients.

pub mod back_off;
pub mod client;
pub mod conditions;

use std::time::Duration;

pub use back_off::BackOff;
pub use client::Controls;
pub use conditions::{Condition, Conditions, Reason};

/// Number of retries of a rule without `retries`: the default of the mesh.
pub const ATTEMPTS_DEFAULT: u32 = 2;

/// Number of retries if a trusted client sets conditions but no number.
pub const ATTEMPTS_CLIENT: u32 = 1;

/// Retry policy of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of retries.
    pub attempts: u32,
    /// Timeout of one attempt, from when it has a connection.
    ///
    /// Unit: time, > 0. Default: the route's timeout.
    pub per_try_timeout: Option<Duration>,
    /// Conditions of retries.
    pub conditions: Conditions,
    /// Back-off between attempts.
    pub back_off: BackOff,
    /// Whether endpoints that were not tried yet are preferred.
    ///
    /// Source: `retryIgnorePreviousHosts`; default: true.
    pub avoid_tried: Option<bool>,
    /// Whether the priorities of the tried endpoints are left out after every two attempts.
    ///
    /// Source: `retryRemoteLocalities`. If no other priority is left, all of them count again.
    pub avoid_priorities: bool,
    /// Whether this is the default retry policy of the mesh.
    pub implied: bool,
}

impl RetryPolicy {
    /// The policy of a rule without `retries`: retries requests that no endpoint has seen, or that a gRPC server
    /// reports as not processed. `retry_503` adds plain 503 responses, like older Istio versions.
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

    /// The base policy for a trusted client that sets conditions for a rule without retries.
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
