//! The data plane of Strait: listeners and the request path. Routing and balancing are the crate `traffic`, messages on
//! the wire the crate `wire`.
//!
//! Modules are declared in the order in which a request walks through them; see `ARCHITECTURE.md` for the map and
//! for the rule on which module may use which.

pub mod app;
pub mod command;

pub mod worker;

pub mod listener;

pub mod detect;

pub mod codec;

pub mod exchange;

pub mod pool;

pub mod upstream;

pub mod snapshot;

pub mod compile;

pub mod explain;

pub mod difference;

pub mod simulate;

pub mod control;

pub mod admin;

pub mod telemetry;

pub mod tls;

pub mod runtime;

pub mod identity;
pub mod jwks;

/// Certificates for tests here and on live sockets.
#[cfg(test)]
#[path = "../tests/support/pki.rs"]
mod pki;
