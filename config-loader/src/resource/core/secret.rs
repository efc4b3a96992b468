//! Secret, checked. Its values are never printed.

use std::collections::BTreeMap;
use std::fmt;

/// A checked Secret.
#[derive(Clone, Debug, Default)]
pub struct Secret {
    /// What its keys are.
    pub secret_type: SecretType,
    /// Its values, decoded. A key of `stringData` wins over the same key of `data`.
    pub data: BTreeMap<String, SecretValue>,
    /// Whether it must never change.
    pub immutable: bool,
}

impl Secret {
    /// The key of a certificate chain in a `kubernetes.io/tls` secret.
    pub const TLS_CERTIFICATE: &'static str = "tls.crt";
    /// The key of a private key in a `kubernetes.io/tls` secret.
    pub const TLS_KEY: &'static str = "tls.key";

    /// The bytes under `key`.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.data.get(key).map(SecretValue::as_bytes)
    }
}

/// What the keys of a secret are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SecretType {
    /// Anything.
    #[default]
    Opaque,
    /// Something that a data plane has no use for.
    Other(String),
    /// A certificate and its key: `kubernetes.io/tls`.
    Tls,
}

/// Bytes that are never printed by accident.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretValue(Box<[u8]>);

impl SecretValue {
    /// The bytes.
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
