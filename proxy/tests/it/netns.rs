//! Traffic capture in network namespaces: kernel rules, and the handling of connections by sidecars.
//!
//! Requires root and iproute2; a test that is skipped prints the reason. `lab` has the namespaces.

mod capture;
mod hold;
mod lab;
mod pod;
mod removal;
mod sidecar;
mod transparent;
