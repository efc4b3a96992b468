//! How texts are matched, and shares, as written.

use serde::Deserialize;

use crate::raw::Field;

/// How a text is matched: one of these; none for presence.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StringMatch {
    /// `exact`
    pub exact: Field<String>,
    /// `prefix`
    pub prefix: Field<String>,
    /// `regex`
    pub regex: Field<String>,
}

/// A share of requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Percent {
    /// `value`
    pub value: Field<f64>,
}
