//! Secret as written. Its values are never printed.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::raw::{Field, Map};

/// Secret as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Secret {
    /// Type of the secret, such as `kubernetes.io/tls`.
    #[serde(rename = "type")]
    pub secret_type: Field<String>,
    /// Values by key, base64.
    pub data: Field<Map<SecretText>>,
    /// Values by key, as text. They override `data`.
    pub string_data: Field<Map<SecretText>>,
    /// Whether the API server rejects changes of the values.
    pub immutable: Field<bool>,
}

/// Secret text, which `Debug` does not print.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SecretText, D::Error> {
        String::deserialize(deserializer).map(SecretText)
    }
}
