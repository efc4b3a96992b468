//! Secret, checked. Its values are never printed.

use std::collections::BTreeMap;
use std::fmt;

/// Checked Secret.
#[derive(Clone, Debug, Default)]
pub struct Secret {
    /// Type of the secret, which defines its keys.
    pub secret_type: SecretType,
    /// Decoded values. A key of `stringData` overrides the same key of `data`.
    pub data: BTreeMap<String, SecretValue>,
    /// Whether the secret is immutable.
    pub immutable: bool,
}

impl Secret {
    /// Key of the certificate chain in a `kubernetes.io/tls` secret.
    pub const TLS_CERTIFICATE: &'static str = "tls.crt";
    /// Key of the private key in a `kubernetes.io/tls` secret.
    pub const TLS_KEY: &'static str = "tls.key";

    /// Returns the bytes under `key`.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.data.get(key).map(SecretValue::as_bytes)
    }
}

/// Type of a secret, which defines its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SecretType {
    /// Arbitrary keys: `Opaque`.
    #[default]
    Opaque,
    /// Other type, which the proxy does not use.
    Other(String),
    /// Certificate and private key: `kubernetes.io/tls`.
    Tls,
}

/// Secret bytes, which `Debug` does not print.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretValue(Box<[u8]>);

impl SecretValue {
    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for SecretValue {
    fn from(bytes: Vec<u8>) -> SecretValue {
        SecretValue(bytes.into_boxed_slice())
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_print_their_values() {
        let value = SecretValue::from(b"hunter2".to_vec());
        let data = BTreeMap::from([("password".to_owned(), value)]);
        let secret = Secret {
            data,
            ..Secret::default()
        };
        for text in [format!("{secret:?}"), format!("{secret:#?}")] {
            assert!(
                text.contains("password: <redacted>") || text.contains("\"password\": <redacted>"),
                "{text}"
            );
            assert!(!text.contains("hunter2"), "{text}");
            assert!(!text.contains("104"), "{text}");
        }
        assert_eq!(secret.get("password"), Some(&b"hunter2"[..]));
    }
}
