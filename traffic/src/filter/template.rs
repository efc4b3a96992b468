//! Header values with `%OPERATOR%`s: parsed once into segments, then printed for each request.
//!
//! The list of all operators is in the validation of values; a test of `compile` checks that both agree.

use http::HeaderValue;

mod certificate;
mod context;
mod error;
mod grpc_status;
mod identifiers;
mod operator;
mod parse;
mod print;
mod start_time;
mod write;

pub use context::{TemplateContext, TlsContext};
pub use error::TemplateError;
pub use identifiers::uuid;
use operator::{Operator, Segment};

/// A value with operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    segments: Box<[Segment]>,
    /// The text as written, for explanations.
    written: Box<str>,
}

impl Template {
    /// Parses `text`.
    ///
    /// # Errors
    ///
    /// If a `%` is neither doubled nor part of a closed operator. An unknown operator is treated as one of Envoy's and
    /// is empty: validation rejects all others.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        parse::segments(text).map(|segments| Self {
            segments: segments.into(),
            written: text.into(),
        })
    }

    /// The text as written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether it has operators that never have a value.
    pub fn has_absent(&self) -> bool {
        let is_absent = |segment: &Segment| {
            let operator = Operator::Absent;
            matches!(segment, Segment::Operator { operator: one, .. } if *one == operator)
        };
        self.segments.iter().any(is_absent)
    }

    /// The text, if it has no operators.
    pub fn as_literal(&self) -> Option<&str> {
        match &*self.segments {
            [] => Some(""),
            [Segment::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The value for a request; `None` if it is empty or not a valid header value.
    pub fn value(&self, context: &TemplateContext<'_>) -> Option<HeaderValue> {
        let mut out = Vec::new();
        for segment in &self.segments {
            segment.print(&mut out, context);
        }
        if out.is_empty() {
            return None;
        }
        HeaderValue::from_maybe_shared(bytes::Bytes::from(out)).ok()
    }
}

#[cfg(test)]
mod tests;
