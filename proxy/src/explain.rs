//! Why a request goes where it goes: the decisions of a snapshot for one request, each with its reason.
//!
//! Decides nothing itself. The route is found by `exchange::select`, verdicts on conditions come from `route::explain`,
//! effects from `filter`, shares from `cluster`: the code that traffic runs through. What is missing from a snapshot is
//! asked of `compile::Survey`. The [`Explanation`] is plain data; text and JSON are both made from it.

pub mod answer;

mod cluster;

mod connection;

mod duration;

pub mod early;

mod effect;

mod endpoints;

mod members;

mod pod;

pub mod question;

pub mod secret;

mod sent;

pub mod text;

mod walk;

pub use answer::Explanation;
pub use question::Question;
pub use walk::explain;
