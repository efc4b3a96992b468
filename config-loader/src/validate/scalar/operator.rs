//! `%OPERATOR%`s in header values: names and parameters.
//!
//! The proxy compiles every operator that is accepted here. A test of its `compile` module ensures that both agree.

mod names;

pub use names::{ABSENT_OPERATORS, LOG_OPERATORS, OPERATORS};

use super::is_header_name;

/// Error in an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorProblem<'t> {
    /// An Envoy operator that never has a value here.
    Absent(&'t str),
    /// Invalid argument or length: the operator, the error, and the fix.
    Argument(&'t str, &'static str, &'static str),
    /// An operator that Envoy does not have either.
    Unknown(&'t str),
}

/// Parsed operator: `NAME(argument):10`.
struct Operator<'t> {
    name: &'t str,
    argument: &'t str,
    rest: &'t str,
}

/// Returns the errors of the operators in a value without a [`super::header_value_problem`].
pub fn operator_problems(text: &str) -> Vec<OperatorProblem<'_>> {
    let mut problems = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let operator = &rest[at + 1..];
        if let Some(after) = operator.strip_prefix('%') {
            rest = after;
            continue;
        }
        let end = operator_end(operator);
        problems.extend(Operator::new(&operator[..end]).problem());
        rest = operator.get(end + 1..).unwrap_or("");
    }
    problems
}

/// Returns the offset of the `%` that ends an operator.
fn operator_end(text: &str) -> usize {
    let mut depth = 0_u32;
    let mut quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if depth > 0 => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'%' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

impl<'t> Operator<'t> {
    fn new(text: &'t str) -> Operator<'t> {
        let (name, rest) = text.split_at(text.find(['(', ':']).unwrap_or(text.len()));
        let in_parentheses = rest
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'));
        let (argument, rest) = in_parentheses.unwrap_or(("", rest));
        Operator {
            name,
            argument,
            rest,
        }
    }

    fn problem(&self) -> Option<OperatorProblem<'t>> {
        if ABSENT_OPERATORS.contains(&self.name) {
            return Some(OperatorProblem::Absent(self.name));
        }
        if !OPERATORS.contains(&self.name) {
            return Some(OperatorProblem::Unknown(self.name));
        }
        let (wrong, help) = self.argument_problem().or_else(|| self.length_problem())?;
        Some(OperatorProblem::Argument(self.name, wrong, help))
    }

    fn argument_problem(&self) -> Option<(&'static str, &'static str)> {
        let argument = self.argument;
        match self.name {
            "ENVIRONMENT" if argument.is_empty() => Some((
                "lacks the name of a variable",
                "write `%ENVIRONMENT(NAME)%`",
            )),
            "REQ" | "REQUEST_HEADER" | "RESP" | "RESPONSE_HEADER" if argument.is_empty() => Some((
                "lacks the name of a header",
                "write `%REQ(NAME)%` or `%RESP(NAME)%`",
            )),
            "REQ" | "REQUEST_HEADER" if !header_names(argument, is_request_header) => {
                Some(NO_HEADER)
            }
            "RESP" | "RESPONSE_HEADER" if !header_names(argument, is_header_name) => {
                Some(NO_HEADER)
            }
            "ENVIRONMENT" | "REQ" | "REQUEST_HEADER" | "RESP" | "RESPONSE_HEADER" => None,
            name if has_time_format(name) => (!is_time_format(argument)).then_some((
                "has a time format that is not known",
                "use those of strftime, such as `%Y-%m-%dT%H:%M:%S%z`, and `%f` or `%1f` to `%9f` for parts of a second",
            )),
            name if name.ends_with("_ADDRESS_WITHOUT_PORT") => {
                let is_prefix = |digits: &str| digits.parse().is_ok_and(|bits: u8| bits <= 128);
                (!argument.is_empty() && !is_prefix(argument)).then_some((
                    "has a prefix that is no number up to 128",
                    "write the bits of the network as in `%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(16)%`, or nothing",
                ))
            }
            "GRPC_STATUS" => {
                let forms = ["", "CAMEL_STRING", "NUMBER", "SNAKE_STRING"];
                (!forms.contains(&argument)).then_some((
                    "has a form that is not known",
                    "use `CAMEL_STRING`, `SNAKE_STRING` or `NUMBER`",
                ))
            }
            _ if !argument.is_empty() => Some(("takes no argument", "remove the parentheses")),
            _ => None,
        }
    }

    fn length_problem(&self) -> Option<(&'static str, &'static str)> {
        let is_number = |digits: &str| digits.parse::<usize>().is_ok();
        let good = self.rest.is_empty() || self.rest.strip_prefix(':').is_some_and(is_number);
        (!good).then_some((
            "is followed by what is no length",
            "write the most characters as in `%REQ(NAME):10%`, or nothing",
        ))
    }
}

const NO_HEADER: (&str, &str) = (
    "does not name a header",
    "write one name, or two with `?` between them",
);

/// Whether an argument has the form `first` or `first?second`.
fn header_names(argument: &str, is_name: fn(&str) -> bool) -> bool {
    let mut names = argument.splitn(2, '?');
    names.all(is_name)
}

fn is_request_header(name: &str) -> bool {
    let pseudo = [":authority", ":method", ":path", ":scheme"];
    is_header_name(name) || pseudo.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether an operator takes a time format.
fn has_time_format(name: &str) -> bool {
    let validity = ["_PEER_CERT_V_END", "_PEER_CERT_V_START"];
    matches!(name, "EMIT_TIME" | "START_TIME") || validity.iter().any(|end| name.ends_with(end))
}

/// Whether a text is a time format with only known specifiers.
fn is_time_format(format: &str) -> bool {
    let mut rest = format;
    while let Some((_, after)) = rest.split_once('%') {
        let mut characters = after.chars();
        let is_known = match characters.next() {
            Some('1'..='9') => characters.next() == Some('f'),
            Some(specifier) => TIME_SPECIFIERS.contains(specifier),
            None => false,
        };
        if !is_known {
            return false;
        }
        rest = characters.as_str();
    }
    true
}

/// Characters that may follow a `%` in a time format.
const TIME_SPECIFIERS: &str = "%ABCDFGHIMRSTUVWXYZabcdefghjklmprstuwxyz";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_and_their_arguments_are_checked() {
        let check = |text: &str, wanted: &[&str]| {
            let found = operator_problems(text);
            let found: Vec<String> = found
                .iter()
                .map(|problem| match problem {
                    OperatorProblem::Argument(name, wrong, _) => format!("{name} {wrong}"),
                    OperatorProblem::Absent(name) => format!("-{name}"),
                    OperatorProblem::Unknown(name) => format!("?{name}"),
                })
                .collect();
            assert_eq!(found, wanted, "{text}");
        };
        check("plain 100%%", &[]);
        check("%REQ(x)% and %PROTOCOL% %HOSTNAME()%", &[]);
        check("%START_TIME(%Y%m %3f)%%START_TIME%", &[]);
        check("%START_TIME(%Y/%m/%dT%H:%M:%S%z %b %e 100%% %s.%3f)%", &[]);
        check("%REQ(:path?X-Other):10%%%", &[]);
        check("%A([\"b)%\"])%c%B%", &["?A", "?B"]);
        check("%CEL(f(a)['b']):3% %TRAILER%", &["-CEL", "-TRAILER"]);
        check("%REQUEST_HEADER(:path)%%GRPC_STATUS(NUMBER)%", &[]);
        check("%EMIT_TIME(%s)%%DOWNSTREAM_PEER_CERT_V_END(%Y)%", &[]);
        check("%UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(64)%", &[]);
        check(
            "%UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(129)%",
            &["UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT has a prefix that is no number up to 128"],
        );
        check(
            "%GRPC_STATUS(number)%",
            &["GRPC_STATUS has a form that is not known"],
        );
        check("%REQ%", &["REQ lacks the name of a header"]);
        check("%RESP(:path)%", &["RESP does not name a header"]);
        check("%REQ(a?)%", &["REQ does not name a header"]);
        check(
            "%ENVIRONMENT()%",
            &["ENVIRONMENT lacks the name of a variable"],
        );
        check("%PROTOCOL(x)%", &["PROTOCOL takes no argument"]);
        check(
            "%PROTOCOL:%",
            &["PROTOCOL is followed by what is no length"],
        );
        check("%REQ(a)7%", &["REQ is followed by what is no length"]);
        check(
            "%START_TIME(%Q)%",
            &["START_TIME has a time format that is not known"],
        );
        check(
            "%START_TIME(%Y%3)%",
            &["START_TIME has a time format that is not known"],
        );
    }
}
