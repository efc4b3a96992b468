//! Objects into and out of a store, beside its server: files of resources, and backups.
//!
//! A store in a data directory belongs to one process, so its server has to be stopped. What is in etcd may be served
//! meanwhile.

pub mod backup;
pub mod export;
pub mod import;
mod location;
pub mod restore;
mod yaml;

pub use location::{Location, Opened};
