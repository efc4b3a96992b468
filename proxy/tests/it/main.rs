//! Real-socket tests, in one binary so that they link once.

#![allow(clippy::unwrap_used)]

#[path = "../support/support.rs"]
mod support;

mod downstream_connections;
mod downstream_drain;
mod downstream_http2;
mod downstream_limits;
mod fuzz_corpus;
mod listeners;
