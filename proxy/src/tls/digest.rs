//! SHA-256, by the cryptography provider of TLS.

use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;

/// Length of a SHA-256 hash.
pub const SHA256_BYTES: usize = 32;

/// SHA-256 hash.
pub type Sha256 = [u8; SHA256_BYTES];

/// Returns the SHA-256 hash of `bytes`.
pub fn sha256(bytes: &[u8]) -> Sha256 {
    let suite = TLS13_AES_128_GCM_SHA256.tls13();
    let hash = suite.map(|suite| suite.common.hash_provider.hash(bytes));
    let mut digest = Sha256::default();
    if let Some(hash) = hash {
        digest.copy_from_slice(hash.as_ref());
    }
    digest
}

/// Returns lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_equals_the_fips_test_vectors() {
        assert_eq!(
            hex(&sha256(b"abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
