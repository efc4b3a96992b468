//! Stores mesh resources durably and serves them as a Kubernetes API server does.
//!
//! A request walks these modules in the order in which they are declared: `server` accepts it and knows its user, `api`
//! answers it, and `store` keeps what it changes. `conditions` writes what is found about objects to their status, and
//! `imports` what clusters import from each other.

mod setup;

pub mod server;

pub mod transfer;

pub mod access;

pub mod status_for;

pub mod imports;

pub mod conditions;

pub mod remote;

pub mod lease;

mod audit;

pub mod xds;

pub mod api;

pub mod proxies;

mod metrics;

mod selector;

mod fields;

mod object;

pub mod resources;

pub mod status;

pub mod store;

mod clock;

mod files;

pub use imports::{ImportingCluster, ImportsBetween};
pub use server::Server;
pub use setup::{CONTEXT, Running, Settings, start};
pub use status_for::StatusFor;
