//! Secret as written. Its values are never printed.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::raw::{Field, Map};

/// Secret as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Secret {
    /// `type`
    #[serde(rename = "type")]
    pub secret_type: Field<String>,
    /// `data`
    pub data: Field<Map<SecretText>>,
    /// `stringData`
    pub string_data: Field<Map<SecretText>>,
    /// `immutable`
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
