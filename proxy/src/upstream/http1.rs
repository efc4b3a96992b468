//! HTTP/1.1 to an endpoint: one request at a time on a connection, driven by the request itself.
//!
//! A connection has no task of its own: the exchange that uses it writes the request and reads the response in place,
//! so that nothing passes between tasks. Only a request body that is incomplete when the response begins continues in a
//! task. Invariant: a connection that returns to the pool has sent the whole request and read exactly the whole
//! response.

mod connection;
mod exchange;
mod incoming;
mod message;
mod reading;

pub use connection::Connection;
pub use incoming::{Incoming, Upgraded};
pub use message::{Interim, Message};

#[cfg(test)]
mod tests;
