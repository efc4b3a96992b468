//! Expressions over attributes: validation.

use std::sync::Arc;

use traffic::filter::{Expression, ExpressionError};
use traffic::pattern::Pattern;

use super::{Check, shared};
use crate::diagnostic::codes::istio::TL015;
use crate::raw::Field;
use crate::re2::{Budget, Extent};

/// Compiles regular expressions of expressions and formats.
pub(super) fn compiler(budget: &Budget) -> impl FnMut(&str) -> Result<Pattern, String> {
    |text: &str| {
        let compiled = budget.compile(text, Extent::Part)?;
        Ok(Pattern::new(text.into(), compiled))
    }
}

/// Returns the expression of a field; `None` if there is none. `without` says what happens without an expression that is
/// not known, if it is only a warning.
pub(super) fn expression(
    field: &Field<String>,
    without: &str,
    check: &mut Check<'_>,
) -> Option<Arc<Expression>> {
    let text = shared::text(field)?;
    let parsed = Expression::parse(text, &mut compiler(check.regexes()));
    match parsed {
        Ok(expression) => return Some(Arc::new(expression)),
        Err(error) => report(&error, field, without, check),
    }
    None
}

fn report(error: &ExpressionError, field: &Field<String>, without: &str, check: &mut Check<'_>) {
    let message = format!("the expression is not supported: {error}");
    let found = match check.options().unknown_fields_pass {
        true => check.warning(TL015, field.span(), format!("{message}; {without}")),
        false => check.error(TL015, field.span(), message),
    };
    found.help("docs/telemetry.md lists the attributes and functions of expressions");
}
