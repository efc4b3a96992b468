//! What was written, field for field as each API has it; no logic. Uses only `span`.
//!
//! Every field of a raw type is a [`Field`], which knows where it was written and whether it was absent, null or
//! of the wrong type. One folder per API group, one file per kind.

pub mod core;
mod field;
pub mod flomesh;
pub mod gloo;
pub mod istio;
pub mod karmada;
pub mod mcs_api;
mod meta;

pub(crate) use field::FIELD;
pub use field::{Field, IntOrString, Map};
pub use meta::ObjectMeta;
