//! Reads mesh resources from files and yields validated, immutable resource sets.

pub mod source;

pub mod parse;

pub mod raw;

pub mod validate;

pub mod resource;

pub mod store;

pub mod diagnostic;

pub mod span;
