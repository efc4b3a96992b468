//! Real-socket tests, in one binary so that they link once.

#[path = "../support/support.rs"]
mod support;

mod listeners;
