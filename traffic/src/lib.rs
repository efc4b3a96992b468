//! The decisions of a proxy, without sockets: which rule a request matches, what it does to the request, which cluster
//! and endpoint get it, and when an endpoint is left out. Time and random numbers are passed in.

pub mod balance;
pub mod certificate;
pub mod cluster;
pub mod connection;
pub mod dates;
pub mod error;
pub mod filter;
pub mod pattern;
pub mod provenance;
pub mod registry;
pub mod route;
pub mod sync;
pub mod telemetry;
