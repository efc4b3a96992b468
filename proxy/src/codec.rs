//! Downstream bytes to requests and back: HTTP/1 and HTTP/2 with their limits, and the end of a connection.
//!
//! Uses `exchange` for the type of a connection, and `runtime`. What answers a request is passed in as [`Handler`].

mod accepted;
pub mod check;
mod connection_table;
mod date;
mod extended_connect;
mod handler;
pub mod handshake;
mod held_output;
pub mod http1;
pub mod http2;
pub mod opaque;
mod park;
pub mod refusal;
mod server;
mod settings;
pub mod socket;
pub mod transport;
pub mod watchdog;

pub use accepted::{AcceptedConnection, Downstream};
pub use handler::Handler;
pub use server::Server;
pub use settings::Settings;
pub use settings::timeouts::Timeouts;
