//! Explanations: the decisions of a snapshot for one request, each with its reason.
//!
//! Decides nothing itself. `exchange::select` finds the route, `route::explain` evaluates conditions, `filter` gives
//! the effects and `cluster` the shares: the code that traffic runs through. `compile::Survey` knows what is missing
//! from a snapshot. The [`Explanation`] is plain data; text and JSON are both made from it.

pub mod access;
pub mod answer;

mod authorization;

mod cluster;

mod connection;

mod duration;

pub mod early;

mod effect;

mod endpoints;

mod limits;

mod members;

mod pod;

mod precedence;

pub mod question;

pub mod secret;

mod sent;

mod tables;

pub mod text;

mod walk;

pub use answer::Explanation;
pub use cluster::parts;
pub use duration::duration;
pub use question::Question;
pub use walk::{explain, rule};
