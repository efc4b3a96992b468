//! What is read and checked but has no effect in this version. Data only: work that gives a field its meaning deletes
//! its row.

use crate::kind::Kind;

/// One field that has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The kind that has the field.
    pub kind: Kind,
    /// Its path, such as `spec.http[].retries`; empty for the kind as a whole. `*` stands for any key.
    pub path: &'static str,
    /// Which values have no effect.
    pub when: When,
}

/// Which values of a field have no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All.
    Written,
    /// These texts.
    Is(&'static [&'static str]),
    /// All texts but these.
    IsNot(&'static [&'static str]),
}

const fn written(kind: Kind, path: &'static str) -> Row {
    Row {
        kind,
        path,
        when: When::Written,
    }
}

/// Every field that has no effect.
pub const ROWS: &[Row] = &[written(Kind::Sidecar, "")];
