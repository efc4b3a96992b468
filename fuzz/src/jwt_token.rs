//! Fuzz target: arbitrary bytes as a token, and as the header and the payload of one.
//!
//! Invariants: no panic; no token without a signature is verified; a token that is read has three parts and at most 16 KiB.

use jwt::{Keys, Refusal, Rule, TOKEN_BYTES_MAX, Token};

const KEYS: &str =
    r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

/// Reads the bytes as a token, and as the two parts of one before and after the first zero byte.
pub fn run(bytes: &[u8]) {
    check(&String::from_utf8_lossy(bytes));
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (header, payload) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    check(&format!("{}.{}.AAAA", encoded(header), encoded(payload)));
}

fn check(text: &str) {
    let Ok(token) = Token::parse(text) else {
        return;
    };
    assert!(text.len() <= TOKEN_BYTES_MAX);
    assert_eq!(text.split('.').filter(|part| !part.is_empty()).count(), 3);
    let keys = Keys::parse(KEYS.as_bytes()).expect("a key set");
    let refusal = Rule::default()
        .verify(&token, Ok(&keys), 1_000_000)
        .expect_err("it has no valid signature");
    assert!(refusal != Refusal::Audience, "no audience is required");
}

/// Base64url without padding.
fn encoded(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = |bits: u32| char::from(DIGITS[(bits & 63) as usize]);
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .fold(0, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        let digits = [18, 12, 6, 0].map(|shift| digit(bits >> shift));
        text.extend(&digits[..=chunk.len()]);
    }
    text
}
