//! Status of objects: conditions, derived from the findings of `strait check`; for the Gateway API also counts, addresses and
//! entries for each parent; for Ingresses addresses only.
//!
//! A feed sends objects (`follow` for this server, `remote` for another one). The `engine` checks them and computes
//! their desired conditions (`wanted`, `merge`), and `run` writes the differences (`write`, `writer`). Findings do
//! not depend on conditions, and unchanged conditions are not written, so that writes do not cause further writes.

mod engine;
mod follow;
mod gateway_api;
mod gateways;
mod ingresses;
mod merge;
mod programmed;
mod remote;
mod run;
mod wanted;
mod write;
mod writer;

pub use engine::Engine;
pub use follow::{Feed, follow};
pub use gateways::{GatewayController, preview};
pub(crate) use merge::merged;
pub use remote::follow_remote;
pub use run::{Reports, run};
pub(crate) use wanted::valid;
pub use write::MANAGER;
pub use writer::Writer;
