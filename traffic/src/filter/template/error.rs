//! Errors of parsing a template.

use std::borrow::Cow;
use std::fmt;

/// Error of parsing a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// The argument of an operator is invalid: the operator, and the reason.
    Argument(String, Cow<'static, str>),
    /// The operator that starts at this byte is not closed.
    Open(usize),
    /// The name is not an operator.
    UnknownOperator(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(operator, problem) => write!(f, "operator {operator}: {problem}"),
            Self::Open(at) => write!(
                f,
                "operator at byte {at} is not closed; write %% for a percent sign"
            ),
            Self::UnknownOperator(operator) => write!(f, "{operator} is no name of an operator"),
        }
    }
}

impl std::error::Error for TemplateError {}
