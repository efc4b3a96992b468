//! Writes `status.conditions`: what `strait check` says of the objects of a server, written to them.
//!
//! A feed tells of objects (`follow` of this server, `remote` of another one), the `engine` checks them and knows which conditions they should have (`wanted`,
//! `merge`), and `run` has those written that differ (`write`, `writer`). A write that changes nothing is never made, and what is
//! written is no reason to write again: findings do not depend on conditions.

mod engine;
mod follow;
mod merge;
mod programmed;
mod remote;
mod run;
mod wanted;
mod write;
mod writer;

pub use engine::Engine;
pub use follow::{Feed, follow};
pub(crate) use merge::merged;
pub use remote::follow_remote;
pub use run::{Reports, run};
pub(crate) use wanted::{Wanted, valid};
pub use write::MANAGER;
pub use writer::Writer;
