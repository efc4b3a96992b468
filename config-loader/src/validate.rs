//! Raw types to checked resources, with every finding as a diagnostic. Uses `raw`, `resource` and `diagnostic`.
//!
//! One function per kind takes the raw type and a [`Check`], and returns the checked one as best it can; the object
//! is refused if the check failed. Validators name places by [`crate::span::Span`]s; the field path is found from the document.

pub mod annotations;
pub(crate) mod api;
mod api_status;
mod check;
pub mod core;
pub mod flomesh;
pub mod gloo;
pub(crate) mod immutable;
pub mod istio;
pub mod karmada;
pub mod mcs_api;
pub mod references;
pub mod scalar;
#[cfg(test)]
mod testing;
pub mod unsupported;

pub use annotations::Annotations;
pub use check::Check;
