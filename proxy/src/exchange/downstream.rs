//! What comes from the client: its connection, who it is, and the body of its request.

pub mod body;
pub mod client_cert;
pub mod connection;
pub mod interim;
pub mod origin;
mod trailers;
