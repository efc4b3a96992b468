//! Names and values of HTTP headers.

/// The longest header name that the proxy can handle.
const HEADER_NAME_BYTES_MAX: usize = u16::MAX as usize;

/// Whether `text` is a header name: a token of RFC 9110 section 5.6.2.
pub fn is_header_name(text: &str) -> bool {
    (1..=HEADER_NAME_BYTES_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// What is wrong with a header value that may hold `%OPERATOR%`s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderValueProblem {
    /// It has a control character other than TAB.
    Control,
    /// A `%` neither doubled nor the start of an operator that ends with `%`.
    OpenPercent,
    /// An operator with an open quote, bracket or parenthesis; the text from its `%`.
    OpenOperator(String),
}

/// What is wrong with a header value: control characters, or `%` that is neither doubled nor a closed operator such as
/// `%REQ(x-user)%`, whose name is in upper case.
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

/// How an operator ends.
enum End {
    /// The offset after its closing `%`.
    After(usize),
    /// Its closing `%` is missing.
    NoPercent,
    /// Its arguments are not closed.
    OpenArguments,
}

/// Where the operator whose opening `%` stands before `text` ends.
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
