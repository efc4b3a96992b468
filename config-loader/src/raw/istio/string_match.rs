//! String matches and percentages, as written.

use serde::Deserialize;

use crate::raw::Field;

/// String match. Exactly one field is set; no field matches any present value.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StringMatch {
    /// Text that must be equal.
    pub exact: Field<String>,
    /// Prefix of the text.
    pub prefix: Field<String>,
    /// Regular expression for the whole text, RE2 dialect.
    pub regex: Field<String>,
}

/// Percentage of requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Percent {
    /// Percentage, 0 to 100. Default: 0.
    pub value: Field<f64>,
}
