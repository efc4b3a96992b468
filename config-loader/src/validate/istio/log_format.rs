//! Formats of the access log: validation.

use std::sync::Arc;

use serde_json::{Map, Value};
use traffic::filter::{LogFormat, LogFormatError, Template};

use super::Check;
use super::expression::compiler;
use crate::diagnostic::codes::istio::TL020;
use crate::diagnostic::suggest;
use crate::re2::Budget;
use crate::span::Span;
use crate::validate::scalar::{
    ABSENT_OPERATORS, LOG_OPERATORS, OPERATORS, OperatorProblem, operator_problems,
};

/// Parses the format of a flag: JSON if it begins with `{`, else text.
///
/// # Errors
///
/// Returns a message about the first error.
pub fn parse_log_format(text: &str) -> Result<Arc<LogFormat>, String> {
    let budget = Budget::default();
    let mut compile = compiler(&budget);
    let unknown = operator_problems(text)
        .into_iter()
        .find_map(|problem| match problem {
            OperatorProblem::Unknown(name) if !LOG_OPERATORS.contains(&name) => Some(name),
            _ => None,
        });
    if let Some(name) = unknown {
        return Err(format!("`%{name}%` is not a known operator"));
    }
    let parsed = match text.starts_with('{') {
        true => {
            let object: Map<String, Value> =
                serde_json::from_str(text).map_err(|error| error.to_string())?;
            let object: Vec<(String, Value)> = object.into_iter().collect();
            LogFormat::json(&object, false, &mut compile)
        }
        false => LogFormat::text(text, false, &mut compile),
    };
    parsed.map(Arc::new).map_err(|error| error.to_string())
}

/// Returns a text format.
pub(super) fn text_format(
    text: &str,
    omits_empty: bool,
    span: Span,
    check: &mut Check<'_>,
) -> Option<Arc<LogFormat>> {
    operators(text, span, check);
    let parsed = LogFormat::text(text, omits_empty, &mut compiler(check.regexes()));
    finish(parsed, span, check)
}

/// Returns a JSON format.
pub(super) fn json_format(
    object: &Map<String, Value>,
    omits_empty: bool,
    span: Span,
    check: &mut Check<'_>,
) -> Option<Arc<LogFormat>> {
    let object: Vec<(String, Value)> = object
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    object
        .iter()
        .for_each(|(_, value)| texts(value, span, check));
    let parsed = LogFormat::json(&object, omits_empty, &mut compiler(check.regexes()));
    finish(parsed, span, check)
}

/// Returns a text with operators of the access log.
pub(super) fn template(text: &str, span: Span, check: &mut Check<'_>) -> Option<Arc<Template>> {
    operators(text, span, check);
    let parsed = Template::parse_log(text, &mut compiler(check.regexes()));
    let parsed = parsed.map_err(LogFormatError::Template);
    finish(parsed, span, check)
}

fn finish<T>(
    parsed: Result<T, LogFormatError>,
    span: Span,
    check: &mut Check<'_>,
) -> Option<Arc<T>> {
    match parsed {
        Ok(format) => Some(Arc::new(format)),
        Err(error) => {
            let found = check.error(TL020, span, format!("the format is not valid: {error}"));
            found.help("write operators as `%NAME(ARGUMENT):LENGTH%`, and `%%` for a percent sign");
            None
        }
    }
}

/// Checks the operators of all texts of a JSON value.
fn texts(value: &Value, span: Span, check: &mut Check<'_>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| texts(one, span, check)),
        Value::Object(object) => object.values().for_each(|one| texts(one, span, check)),
        Value::String(text) => operators(text, span, check),
        Value::Bool(_) | Value::Null | Value::Number(_) => {}
    }
}

/// Reports operators that do not exist, or never have a value.
fn operators(text: &str, span: Span, check: &mut Check<'_>) {
    for problem in operator_problems(text) {
        match problem {
            OperatorProblem::Absent(name) | OperatorProblem::Unknown(name)
                if LOG_OPERATORS.contains(&name) => {}
            OperatorProblem::Absent(name) => {
                let message =
                    format!("operator `{name}` of Envoy has no value here: it prints `-`");
                let found = check.warning(TL020, span, message);
                found.help("docs/telemetry.md lists the operators that have values");
            }
            OperatorProblem::Unknown(name) => {
                let found = check.error(TL020, span, format!("`%{name}%` is not a known operator"));
                let known = OPERATORS.into_iter().chain(ABSENT_OPERATORS);
                match suggest::nearest(name, known) {
                    Some(near) => found.help(format!("did you mean `%{near}%`?")),
                    None => found.help("write `%%` for a percent sign"),
                };
            }
            // the format is parsed as well
            OperatorProblem::Argument(..) => {}
        }
    }
}
