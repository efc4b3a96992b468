//! The condition on the path, and the normal form that paths are brought to before anything looks at them.

use std::borrow::Cow;
use std::fmt;

use crate::pattern::Pattern;

/// A condition on the path, without query. Plain strings: `/foo` is a prefix of `/foobar`.
#[derive(Clone, Debug, Default)]
pub enum UriMatch {
    /// Nothing.
    #[default]
    Any,
    /// The same bytes.
    Exact {
        /// The wanted path.
        value: Box<str>,
        /// Whether ASCII case makes no difference.
        ignore_case: bool,
    },
    /// The path starts with these bytes; an empty prefix matches every path.
    Prefix {
        /// The wanted start.
        value: Box<str>,
        /// Whether ASCII case makes no difference.
        ignore_case: bool,
    },
    /// The whole path matches, in its own case.
    Regex(Pattern),
}

impl UriMatch {
    /// Whether `path` fulfils the condition.
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Exact {
                value,
                ignore_case: false,
            } => path == value.as_bytes(),
            Self::Exact {
                value,
                ignore_case: true,
            } => path.eq_ignore_ascii_case(value.as_bytes()),
            Self::Prefix {
                value,
                ignore_case: false,
            } => path.starts_with(value.as_bytes()),
            Self::Prefix {
                value,
                ignore_case: true,
            } => path
                .get(..value.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(value.as_bytes())),
            Self::Regex(wanted) => wanted.is_match(path),
        }
    }

    /// Whether the condition ends a list of rules: none, prefix `/`, regex `.*`.
    ///
    /// Istio goes by the text, not by the meaning: an empty prefix takes all paths too, yet keeps its place when
    /// several resources are merged.
    pub fn is_catch_all(&self) -> bool {
        match self {
            Self::Any => true,
            Self::Exact { .. } => false,
            Self::Prefix { value, .. } => &**value == "/",
            Self::Regex(wanted) => wanted.written() == ".*",
        }
    }

    /// The wanted text as it was written; empty without a condition.
    pub fn wanted(&self) -> &str {
        match self {
            Self::Any => "",
            Self::Exact { value, .. } | Self::Prefix { value, .. } => value,
            Self::Regex(wanted) => wanted.written(),
        }
    }
}

/// Why a path has no normal form; the request is answered with 400, details `path_normalization_failed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidPath {
    /// `..;x` or `.;x`: some origins read it as a dot segment, others as a name.
    DotParameters,
    /// `%00`: some origins end the path there.
    EscapedNul,
}

impl fmt::Display for InvalidPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DotParameters => "path has a dot segment with parameters (`..;`)",
            Self::EscapedNul => "path holds an escaped NUL (`%00`)",
        })
    }
}

impl std::error::Error for InvalidPath {}

/// Brings a path, without query, to the form that rules are compared with and that goes upstream.
///
/// As Istio's default `BASE`: `\` becomes `/`, escapes of unreserved characters are decoded (`%41`, `%2e`), characters
/// that no URI has (RFC 3986, section 2) are escaped, then dot segments are resolved (sections 6.2.2.2 and 5.2.4).
/// Adjacent slashes, escaped slashes and the case of escapes are kept. Borrows when there is nothing to do, which one
/// pass over the bytes finds out.
///
/// Invariant: the normal form of a normal form is itself, so that an origin that decodes as well reads the path that rules
/// were compared with. A `%` that begins no escape stays, unless decoding behind it would make it begin one: it then
/// becomes `%25`, as in Envoy (`/%%361dmin` is `/%2561dmin`).
///
/// # Errors
///
/// When the path holds `%00`, or a dot segment with parameters (`..;a`), which Envoy takes for a dot segment while some
/// origins take it for a name.
pub fn normalize_path(path: &str) -> Result<Cow<'_, str>, InvalidPath> {
    if is_normal(path.as_bytes()) {
        return Ok(Cow::Borrowed(path));
    }
    let decoded = decode_unreserved(path.as_bytes())?;
    let resolved = resolve_dots(&decoded)?;
    // What is not ASCII was escaped.
    Ok(Cow::Owned(
        String::from_utf8(resolved).expect("only ASCII is left"),
    ))
}

/// What a byte of a path needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    /// It is no character of a URI, and is escaped.
    Escape,
    /// It depends on its neighbours: `\`, `%` and `.`.
    Look,
}

/// What each byte needs.
static NEEDS: [Need; 256] = {
    let mut needs = [Need::Nothing; 256];
    let mut byte = 0;
    while byte < 256 {
        needs[byte] = match byte as u8 {
            b'%' | b'.' | b'\\' => Need::Look,
            b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x7f.. => Need::Escape,
            _ => Need::Nothing,
        };
        byte += 1;
    }
    needs
};

/// Whether [`normalize_path`] would change nothing; may say no for a path that turns out normal.
fn is_normal(path: &[u8]) -> bool {
    path.iter()
        .enumerate()
        .all(|(at, &byte)| match NEEDS[usize::from(byte)] {
            Need::Nothing => true,
            Need::Escape => false,
            Need::Look => stays(path, at, byte),
        })
}

/// Whether a byte that depends on its neighbours stays as it is.
fn stays(path: &[u8], at: usize, byte: u8) -> bool {
    match byte {
        b'%' => !escaped(path, at).is_some_and(|byte| byte == 0 || is_unreserved(byte)),
        b'.' => at == 0 || path[at - 1] != b'/' || !dots_end_segment(&path[at..]),
        _ => false,
    }
}

/// Whether a segment that starts with these bytes is `.` or `..`, or may be one.
fn dots_end_segment(rest: &[u8]) -> bool {
    matches!(
        rest.strip_prefix(b"..").unwrap_or(&rest[1..]),
        [] | [b'/' | b'\\' | b';' | b'%', ..]
    )
}

/// The byte that the escape at `at` means; `None` when that is no complete escape.
fn escaped(path: &[u8], at: usize) -> Option<u8> {
    let digit = |offset: usize| (*path.get(at + offset)? as char).to_digit(16);
    Some((digit(1)? * 16 + digit(2)?) as u8)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a `%` is that of an escape with what was written behind it and the next byte of the path.
fn begins_escape(written: &[u8], next: Option<u8>) -> bool {
    match *written {
        [_, first] => {
            first.is_ascii_hexdigit() && next.is_some_and(|next| next.is_ascii_hexdigit())
        }
        [_, first, second] => first.is_ascii_hexdigit() && second.is_ascii_hexdigit(),
        _ => false,
    }
}

fn decode_unreserved(path: &[u8]) -> Result<Vec<u8>, InvalidPath> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = Vec::with_capacity(path.len());
    let mut at = 0;
    // where in `out` the last `%` is that begins no escape
    let mut stray = None;
    while let Some(&byte) = path.get(at) {
        match (byte, escaped(path, at)) {
            (b'%', Some(0)) => return Err(InvalidPath::EscapedNul),
            (b'%', Some(decoded)) if is_unreserved(decoded) => {
                out.push(decoded);
                at += 3;
                if let Some(percent) = stray
                    && begins_escape(&out[percent..], path.get(at).copied())
                {
                    out.splice(percent + 1..percent + 1, *b"25");
                    stray = None;
                }
                continue;
            }
            (b'%', None) => {
                stray = Some(out.len());
                out.push(b'%');
            }
            (b'\\', _) => out.push(b'/'),
            _ if NEEDS[usize::from(byte)] == Need::Escape => {
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                out.extend([b'%', HEX[high], HEX[low]]);
            }
            _ => out.push(byte),
        }
        at += 1;
    }
    Ok(out)
}

/// Removes `.` segments and lets each `..` take the segment before it away; never goes above the root.
fn resolve_dots(path: &[u8]) -> Result<Vec<u8>, InvalidPath> {
    if path.first() != Some(&b'/') {
        return Ok(path.to_vec());
    }
    let mut out = Vec::with_capacity(path.len());
    let mut segments = path[1..].split(|&byte| byte == b'/').peekable();
    // Each turn appends "/segment" or takes one away; a dot segment in the end leaves its slash.
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            b"." | b".." => {
                if segment == b".." {
                    let parent = out.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                    out.truncate(parent);
                }
                if last {
                    out.push(b'/');
                }
            }
            _ if is_dots_with_parameters(segment) => return Err(InvalidPath::DotParameters),
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
    }
    Ok(out)
}

/// Whether a segment is `.` or `..` with path parameters (RFC 3986, section 3.3), the `;` escaped or not.
fn is_dots_with_parameters(segment: &[u8]) -> bool {
    let name = segment.strip_prefix(b".").unwrap_or_default();
    let rest = name.strip_prefix(b".").unwrap_or(name);
    matches!(rest, [b';', ..] | [b'%', b'3', b'b' | b'B', ..])
}

#[cfg(test)]
mod tests;
