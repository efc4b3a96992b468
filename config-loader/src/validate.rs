//! Validation: turns raw types into checked resources, and reports every diagnostic. Uses `raw`, `resource` and
//! `diagnostic`.
//!
//! One function per kind takes the raw type and a [`Check`], and returns the resource as far as it is valid. An object
//! with an error is rejected. Validators give locations as [`crate::span::Span`]s; the field path is derived from the
//! document.

pub mod annotations;
pub(crate) mod api;
mod api_status;
mod check;
pub mod core;
pub mod envoy_gateway;
pub mod flomesh;
pub mod gateway_api;
pub mod gloo;
pub mod immutable;
pub mod istio;
pub mod karmada;
pub mod mcs_api;
pub mod networking;
pub mod references;
pub mod scalar;
#[cfg(test)]
mod testing;
pub mod unsupported;

pub use annotations::Annotations;
pub use check::Check;
