//! Ingresses as objects of the Gateway API and policies: the only translation, which proxies serve and `strait migrate`
//! prints.
//!
//! [`translate`] is pure. Each of its objects is a text in which rules have the lines that they have in their Ingress, and
//! is read as objects of files are. [`Translator`] keeps what a change leaves as it is.

mod annotations;
mod classes;
mod entries;
mod listeners;
mod nginx;
mod objects;
mod outcome;
mod policies;
mod reading;
mod redirects;
mod route_parts;
mod routes;
mod rule_parts;
mod services;
mod text;
mod translation;
mod translator;

pub use annotations::{KNOWN, Treatment};
pub use classes::served_names;
pub use objects::{GATEWAY, Translated, Translation};
pub use outcome::{Outcome, Verdict};
pub use translation::translate;
pub use translator::{Expanded, Translator};

pub use crate::options::{HostOwner, IngressSettings, NginxRegex};

#[cfg(test)]
mod tests;
