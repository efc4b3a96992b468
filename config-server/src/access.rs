//! Authentication and authorization: users, bearer tokens, certificates and roles.

pub mod attempts;
pub mod guard;
pub mod pki;
pub mod reviews;
pub mod roles;
pub mod tokens;
pub mod user;
pub mod users;

pub use guard::Guard;
pub use roles::{Attributes, Role};
pub use user::User;
pub use users::Users;
