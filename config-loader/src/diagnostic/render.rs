//! Findings as text for people, as JSON for programs, and as annotations for GitHub.
//!
//! Each renderer takes findings in the order in which they are to appear.

mod github;
mod json;
mod text;

pub use github::github;
pub use json::json;
pub use text::{Style, summary, text};

#[cfg(test)]
mod tests;
