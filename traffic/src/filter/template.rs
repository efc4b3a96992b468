//! Header values with `%OPERATOR%`s: parsed once into segments, then printed for each request.
//!
//! The list of all operators is in the validation of values; a test of `compile` checks that both agree.

use http::HeaderValue;

mod certificate;
mod context;
mod error;
mod expression;
mod grpc_status;
mod header;
mod identifiers;
mod log_format;
mod log_operator;
mod needs;
mod operator;
mod parse;
mod print;
mod sizes;
mod start_time;
mod write;

pub use context::{Finished, Node, TemplateContext, TlsContext};
pub use error::TemplateError;
pub use expression::{CompileRegex, Expression, ExpressionError};
pub use grpc_status::grpc_status_name;
pub use identifiers::uuid;
pub use log_format::{LogFormat, LogFormatError, LogValue};
pub use needs::Needs;
use operator::{Operator, Segment};
pub use write::http_version;

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
        parse::segments(text, None).map(|segments| Self {
            segments: segments.into(),
            written: text.into(),
        })
    }

    /// Parses the text of a line of the access log, which has more operators. `compile` compiles the regular expressions
    /// of `%CEL(..)%`.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`], and for an invalid expression.
    pub fn parse_log(text: &str, compile: CompileRegex<'_>) -> Result<Self, TemplateError> {
        parse::segments(text, Some(compile)).map(|segments| Self {
            segments: segments.into(),
            written: text.into(),
        })
    }

    /// Appends the text for a finished request or connection. `finish` changes what each segment has appended from a
    /// position on, and is told whether it is literal text.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        context: &TemplateContext<'_>,
        mut finish: impl FnMut(&mut Vec<u8>, usize, bool),
    ) {
        for segment in &self.segments {
            let start = out.len();
            segment.print(out, context);
            finish(out, start, matches!(segment, Segment::Literal(_)));
        }
    }

    /// Whether the value is one number.
    pub fn is_number(&self) -> bool {
        match &*self.segments {
            [
                Segment::Operator {
                    operator,
                    chars_max: None,
                },
            ] => operator.is_number(),
            _ => false,
        }
    }

    /// Whether the value is that of one operator.
    pub fn is_operator(&self) -> bool {
        matches!(&*self.segments, [Segment::Operator { .. }])
    }

    /// Adds the headers that the operators read.
    pub fn add_needs(&self, needs: &mut Needs) {
        for segment in &self.segments {
            if let Segment::Operator { operator, .. } = segment {
                operator.add_needs(needs);
            }
        }
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
