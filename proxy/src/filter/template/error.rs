//! Why a text is not a template.

use std::fmt;

/// Why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// The argument of an operator makes no sense: the operator, and what is wrong.
    Argument(String, &'static str),
    /// The text ends within an operator that starts at this byte.
    Open(usize),
    /// No name of an operator.
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
