//! Stable codes of the rules, each with its severity and a one-line description.
//!
//! A code is never reused for another rule. There is one file of rows per family of kinds.

use std::fmt;

use super::Severity;

/// Stable code of a rule, such as `VS036`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Row of the table of codes: code, severity and description.
pub type Row = (Code, Severity, &'static str);

/// Declares codes and the rows of the table from one list, so that both always match.
macro_rules! codes {
    ($($code:ident $severity:ident $text:literal;)*) => {
        $(
            #[doc = $text]
            pub const $code: $crate::diagnostic::codes::Code = $crate::diagnostic::codes::Code(stringify!($code));
        )*
        /// Rows of this family of kinds.
        pub(super) const ROWS: &[$crate::diagnostic::codes::Row] =
            &[$(($code, $crate::diagnostic::Severity::$severity, $text)),*];
    };
}

pub mod common;
pub mod core;
pub mod gateway_api;
pub mod identity;
pub mod imports;
pub mod ingress;
pub mod istio;
pub mod limits;
pub mod multicluster;
pub mod references;
pub mod tls;

/// Iterates over all codes.
pub fn all() -> impl Iterator<Item = &'static Row> {
    [
        common::ROWS,
        istio::ROWS,
        multicluster::ROWS,
        core::ROWS,
        imports::ROWS,
        references::ROWS,
        limits::ROWS,
        gateway_api::ROWS,
        identity::ROWS,
        ingress::ROWS,
        tls::ROWS,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique() {
        let mut codes: Vec<Code> = all().map(|row| row.0).collect();
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }
}
