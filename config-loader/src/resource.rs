//! Checked types: resources with validated values and defaults. Uses `kind` and `span`.
//!
//! Fields with a known default are not optional, durations are `Duration`s, and regular expressions are compiled. An
//! [`Object`] is immutable and shared: an unchanged object keeps its `Arc` from one [`ResourceSet`] to the next.

mod by_kind;
pub mod core;
pub mod envoy_gateway;
pub mod flomesh;
pub mod gateway_api;
pub mod gloo;
mod health_check;
pub mod istio;
pub mod karmada;
pub mod networking;
mod object;
pub mod port_protocol;
mod set;
mod shared_map;
mod shared_text;
mod spec;
mod text_map;
mod values;

pub use health_check::{HealthCheck, HealthChecked, Probe};
pub use object::{Age, Object, Order, Provenance};
pub use set::{Objects, ResourceSet};
pub use shared_map::SharedMap;
pub(crate) use shared_text::shared_text;
pub use spec::{AnyObject, Spec};
pub use text_map::TextMap;
pub use values::{DefaultExport, DefaultExports, ExportTo, Percent};

pub use crate::kind::{Kind, Name, ObjectRef};
pub use crate::span::Line;
