//! Raw types: the fields of each API as written, without logic. Uses only `span`.
//!
//! Every field of a raw type is a [`Field`], which has the position in the document, and distinguishes absent, null and
//! wrongly typed values. There is one folder per API group and one file per kind.

pub mod core;
pub mod envoy_gateway;
mod field;
pub mod flomesh;
pub mod gateway_api;
pub mod gloo;
pub mod istio;
pub mod karmada;
pub mod mcs_api;
mod meta;
pub mod networking;

pub(crate) use field::FIELD;
pub use field::{Field, IntOrString, Map};
pub use meta::ObjectMeta;
