//! The downstream side of an exchange: the connection, the client's identity, and the request body.

pub mod body;
pub mod client_cert;
pub mod connection;
pub mod interim;
pub mod origin;
pub mod peer_stats;
mod trailers;
