//! ConfigMap as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::raw::{Field, Map};

/// ConfigMap as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMap {
    /// Values by key.
    pub data: Field<Map<String>>,
    /// Values by key, base64.
    pub binary_data: Field<IgnoredAny>,
    /// Whether the API server rejects changes of the values.
    pub immutable: Field<bool>,
}
