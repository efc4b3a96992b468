//! String matches and percentages, as written.

use serde::Deserialize;

use crate::raw::Field;

/// String match. Exactly one field is set; no field matches any present value.
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

/// Percentage of requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Percent {
    /// `value`
    pub value: Field<f64>,
}
