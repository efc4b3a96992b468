//! Names and values of HTTP headers.

/// Largest length of a header name that the proxy supports, in bytes.
const HEADER_NAME_BYTES_MAX: usize = u16::MAX as usize;

/// Whether `text` is a header name: a token of RFC 9110 section 5.6.2.
pub fn is_header_name(text: &str) -> bool {
    (1..=HEADER_NAME_BYTES_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Error in a header value that may contain `%OPERATOR%`s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderValueProblem {
    /// A control character other than TAB.
    Control,
    /// A `%` that is neither doubled nor the start of a closed operator.
    OpenPercent,
    /// An operator with an open quote, bracket or parenthesis; the text from its `%`.
    OpenOperator(String),
}

/// Returns the error in a header value: a control character, or a `%` that is neither doubled nor part of a closed
/// operator such as `%REQ(x-user)%`, whose name is in upper case.
pub fn header_value_problem(text: &str) -> Option<HeaderValueProblem> {
    if text
        .bytes()
        .any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
    {
        return Some(HeaderValueProblem::Control);
    }
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let operator = &rest[at + 1..];
        if let Some(after) = operator.strip_prefix('%') {
            rest = after;
            continue;
        }
        match operator_end(operator) {
            End::After(end) => rest = &operator[end..],
            End::NoPercent => return Some(HeaderValueProblem::OpenPercent),
            End::OpenArguments => {
                return Some(HeaderValueProblem::OpenOperator(rest[at..].to_owned()));
            }
        }
    }
    None
}

/// End of an operator.
enum End {
    /// Offset after the closing `%`.
    After(usize),
    /// The closing `%` is missing.
    NoPercent,
    /// The arguments are not closed.
    OpenArguments,
}

/// Returns the end of the operator whose opening `%` precedes `text`.
fn operator_end(text: &str) -> End {
    let mut closers: Vec<u8> = Vec::new();
    let mut quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        if quoted {
            quoted = byte != b'"';
            continue;
        }
        match byte {
            b'"' if !closers.is_empty() => quoted = true,
            b'(' => closers.push(b')'),
            b'[' => closers.push(b']'),
            b')' | b']' if closers.last() == Some(&byte) => {
                closers.pop();
            }
            b')' | b']' => return End::OpenArguments,
            _ if !closers.is_empty() => {}
            b'%' if at > 0 => return End::After(at + 1),
            b'A'..=b'Z' | b'0'..=b'9' | b'_' | b':' => {}
            _ => return End::NoPercent,
        }
    }
    if closers.is_empty() {
        End::NoPercent
    } else {
        End::OpenArguments
    }
}
