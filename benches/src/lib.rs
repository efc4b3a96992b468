//! Shared pieces of the benches.

pub mod compare;
