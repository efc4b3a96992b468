//! Fuzz target: arbitrary bytes as the key set of an issuer.
//!
//! Invariants: no panic; a key set that is read verifies no token with a signature of zeros.

use jwt::{Keys, Rule, Token};

/// Reads the bytes as a key set.
pub fn run(bytes: &[u8]) {
    let Ok(keys) = Keys::parse(bytes) else {
        return;
    };
    // `{"alg":"EdDSA"}`, `{}` and 64 bytes of zero
    let token = format!("eyJhbGciOiJFZERTQSJ9.e30.{}", "A".repeat(86));
    let token = Token::parse(&token).expect("a token");
    assert!(Rule::default().verify(&token, Ok(&keys), 0).is_err());
}
