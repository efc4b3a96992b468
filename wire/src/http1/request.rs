//! Requests of clients: bytes to heads and bodies.

pub mod decoder;
pub mod head;
pub mod refusal;
