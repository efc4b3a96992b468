//! Verification of JSON Web Tokens (RFC 7515, 7517, 7518, 7519): pure, with the time as an argument. Algorithms are those
//! with public keys; a shared secret would let every verifier sign.
//!
//! The order of the checks and the texts of refusals are Envoy's. Reading is strict: one token has one reading.

mod algorithm;
mod keys;
mod refusal;
mod rule;
mod token;

pub use keys::{BadKeys, KEYS_BYTES_MAX, Keys};
pub use refusal::Refusal;
pub use rule::{Rule, UnixSeconds};
pub use token::{TOKEN_BYTES_MAX, Token};

#[cfg(test)]
mod tests;
