//! Renderers of diagnostics: text for people, JSON for programs, and annotations for GitHub.
//!
//! Each renderer keeps the order of its input.

pub mod github;
mod json;
mod text;

pub use github::github;
pub use json::json;
pub use text::{Style, summary, text};

#[cfg(test)]
mod tests;
