//! Captured traffic in network namespaces: rules of the kernel, and what sidecars do with the connections.
//!
//! Needs root and iproute2; every test says why it is skipped elsewhere. `lab` has the namespaces.

mod capture;
mod hold;
mod lab;
mod pod;
mod removal;
mod sidecar;
mod transparent;
