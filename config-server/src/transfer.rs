//! Offline access to a store: import and export of resource files, backup and restore.
//!
//! A store in a data directory belongs to one process, so that its server must be stopped. A store in etcd may be
//! served meanwhile.

pub mod backup;
pub mod export;
pub mod import;
mod location;
pub mod restore;

pub use location::{Location, Opened};
