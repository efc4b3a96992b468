//! Config server: durable store of mesh resources with a Kubernetes API.
//!
//! A request passes these modules in the order of their declaration: `server` accepts and authenticates it, `api`
//! answers it, and `store` persists its changes, or `mirror` follows an API server (`hub`). `conditions` writes findings
//! to the status of objects, `imports` writes the ServiceImports of several clusters, `webhook` adds sidecars to pods, and
//! `identities` signs the certificates of workloads.

mod setup;

pub mod roles;

pub mod hub;

pub mod server;

pub mod transfer;

pub mod access;

pub mod status_for;

pub mod imports;

pub mod webhook;

pub mod mirror;

pub mod conditions;

pub mod remote;

pub mod lease;

pub mod identities;

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

mod grpc;

mod shared_secret;

mod connections;

mod clock;

mod files;

pub use hub::Hub;
pub use identities::IssueIdentities;
pub use imports::{ImportingCluster, ImportsBetween};
pub use roles::{Addresses, Roles};
pub use server::Server;
pub use setup::{CONTEXT, Running, Settings, start};
pub use status_for::StatusFor;
pub use webhook::Webhook;
