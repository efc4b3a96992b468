//! TLS: certificates and keys to what rustls serves and connects with, and TLS over a socket.
//!
//! Row 0: uses `error` and `runtime` only. Bytes come in, with the time; nothing here reads a file. What is wrong with
//! them comes back as data, see [`Problem`]. Keys never reach a log, a dump or a page.

mod bundles;

mod chain;

mod ciphers;

pub mod client;

mod clients;

pub mod digest;

pub mod encrypted;

pub mod material;

pub mod peer;

pub mod pem;

pub mod problem;

mod protocol;

mod select;

pub mod server;

mod server_verify;

pub mod source;

pub mod spiffe;

pub mod store;

pub(crate) mod verify;

pub use client::{ClientMode, ClientSettings, ClientTls, Inside, Naming};
pub use clients::ClientCertRequirements;
pub use material::{Authorities, Facts, Identity, Name};
pub use peer::Peer;
pub use problem::{Problem, ProblemKind};
pub use protocol::{ProtocolSettings, Version};
pub use server::{Alpn, ServerSettings, ServerTls};
pub use server_verify::WrongNames;
pub use source::{AuthoritySource, IdentitySource, ReferredObject};
pub use store::Store;
