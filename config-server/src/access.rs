//! Who may do what.

pub mod attempts;
pub mod pki;
pub mod roles;
pub mod tokens;

pub use roles::{Role, User};
