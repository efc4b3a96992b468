//! Path conditions, and the normalization of paths before anything matches on them.

use std::borrow::Cow;
use std::fmt;

use super::CallMatch;
use crate::pattern::Pattern;

/// A condition on the path, without query.
#[derive(Clone, Debug, Default)]
pub enum UriMatch {
    /// No condition.
    #[default]
    Any,
    /// The same bytes.
    Exact {
        /// Wanted path.
        value: Box<str>,
        /// Whether ASCII case is ignored.
        ignore_case: bool,
    },
    /// The path starts with these bytes, so `/foo` is a prefix of `/foobar`; an empty prefix matches every path.
    ///
    /// Source: VirtualService `uri.prefix`.
    Prefix {
        /// Wanted prefix.
        value: Box<str>,
        /// Whether ASCII case is ignored.
        ignore_case: bool,
    },
    /// The path starts with these segments: `/foo` matches `/foo`, `/foo/` and `/foo/bar`, but not `/foobar`. The
    /// value does not end with a slash; an empty one matches every path with a slash in front.
    ///
    /// Source: HTTPRoute `path` of type `PathPrefix`; GRPCRoute `method.service` alone.
    Segments(Box<str>),
    /// The whole path matches, case-sensitive.
    Regex(Pattern),
    /// The path names a service and a method of gRPC.
    ///
    /// Source: GRPCRoute `method`, unless an exact path or segments say the same.
    Call(Box<CallMatch>),
}

impl UriMatch {
    /// Whether `path` meets the condition.
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
            Self::Segments(value) => path
                .strip_prefix(value.as_bytes())
                .is_some_and(|rest| matches!(rest, [] | [b'/', ..])),
            Self::Regex(wanted) => wanted.is_match(path),
            Self::Call(wanted) => wanted.matches(path),
        }
    }

    /// Whether the condition ends a list of rules: no condition, prefix `/`, regex `.*`.
    ///
    /// Like Istio, compares the text and not its meaning: an empty prefix matches all paths too, but keeps its position
    /// when several resources are merged.
    pub fn is_catch_all(&self) -> bool {
        match self {
            Self::Any => true,
            Self::Call(_) | Self::Exact { .. } | Self::Segments(_) => false,
            Self::Prefix { value, .. } => &**value == "/",
            Self::Regex(wanted) => wanted.written() == ".*",
        }
    }

    /// Wanted text as written; empty without a condition.
    pub fn wanted(&self) -> &str {
        match self {
            Self::Any => "",
            Self::Exact { value, .. } | Self::Prefix { value, .. } | Self::Segments(value) => value,
            Self::Regex(wanted) => wanted.written(),
            Self::Call(wanted) => wanted.written(),
        }
    }
}

/// The reason why a path cannot be normalized; the request gets 400, details `path_normalization_failed`.
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

/// Extent of the normalization of paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathNormalization {
    /// By [`normalize_path`].
    #[default]
    Base,
    /// As [`Self::MergeSlashes`], after `%2F` and `%5C` are decoded.
    DecodeAndMergeSlashes,
    /// As [`Self::Base`], and adjacent slashes become one.
    MergeSlashes,
    /// Not at all.
    None,
}

impl PathNormalization {
    /// Whether adjacent slashes become one.
    pub fn merges_slashes(self) -> bool {
        matches!(self, Self::DecodeAndMergeSlashes | Self::MergeSlashes)
    }

    /// Normalizes a path without query. To normalize it again changes nothing.
    ///
    /// # Errors
    ///
    /// Those of [`normalize_path`], unless paths are not normalized.
    pub fn normalize(self, path: &str) -> Result<Cow<'_, str>, InvalidPath> {
        let normal = match self {
            Self::None => return Ok(Cow::Borrowed(path)),
            Self::DecodeAndMergeSlashes if path.contains('%') => {
                Cow::Owned(normalize_path(&decode_slashes(path))?.into_owned())
            }
            _ => normalize_path(path)?,
        };
        if !self.merges_slashes() || !normal.contains("//") {
            return Ok(normal);
        }
        let mut merged = normal.into_owned();
        let mut before = ' ';
        merged.retain(|next| std::mem::replace(&mut before, next) != '/' || next != '/');
        Ok(Cow::Owned(merged))
    }
}

fn decode_slashes(path: &str) -> String {
    let slashes = path.replace("%2F", "/").replace("%2f", "/");
    slashes.replace("%5C", "\\").replace("%5c", "\\")
}

/// Normalizes a path without query, for matching and for the upstream.
///
/// Like Istio's default `BASE`: replaces `\` by `/`, decodes escapes of unreserved characters (`%41`, `%2e`), escapes
/// characters that no URI may contain (RFC 3986, section 2), then resolves dot segments (sections 6.2.2.2 and 5.2.4).
/// Keeps adjacent slashes, escaped slashes and the case of escapes. Borrows a path that is normal already, which one
/// pass over the bytes determines.
///
/// Invariant: normalizing twice changes nothing, so that an origin that decodes again reads the path that rules were
/// compared with. A `%` that begins no escape stays, unless decoding the following characters would turn it into one:
/// then it becomes `%25`, as in Envoy (`/%%361dmin` is `/%2561dmin`).
///
/// # Errors
///
/// If the path contains `%00`, or a dot segment with parameters (`..;a`), which Envoy reads as a dot segment and some
/// origins as a name.
pub fn normalize_path(path: &str) -> Result<Cow<'_, str>, InvalidPath> {
    if is_normal(path.as_bytes()) {
        return Ok(Cow::Borrowed(path));
    }
    let decoded = decode_unreserved(path.as_bytes())?;
    let resolved = resolve_dots(&decoded)?;
    // all other characters were escaped
    Ok(Cow::Owned(
        String::from_utf8(resolved).expect("only ASCII is left"),
    ))
}

/// Normalization that a byte of a path needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    /// Not allowed in a URI, must be escaped.
    Escape,
    /// Depends on its neighbors: `\`, `%` and `.`.
    Look,
}

/// Normalization by byte.
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

/// Whether [`normalize_path`] would change nothing; may be false for a path that turns out normal.
fn is_normal(path: &[u8]) -> bool {
    path.iter()
        .enumerate()
        .all(|(at, &byte)| match NEEDS[usize::from(byte)] {
            Need::Nothing => true,
            Need::Escape => false,
            Need::Look => is_unchanged(path, at, byte),
        })
}

/// Whether normalization leaves a byte as it is that depends on its neighbors.
fn is_unchanged(path: &[u8], at: usize, byte: u8) -> bool {
    match byte {
        b'%' => !escaped(path, at).is_some_and(|byte| byte == 0 || is_unreserved(byte)),
        b'.' => at == 0 || path[at - 1] != b'/' || !dots_end_segment(&path[at..]),
        _ => false,
    }
}

/// Whether a segment that starts with these bytes is, or may be, `.` or `..`.
fn dots_end_segment(rest: &[u8]) -> bool {
    matches!(
        rest.strip_prefix(b"..").unwrap_or(&rest[1..]),
        [] | [b'/' | b'\\' | b';' | b'%', ..]
    )
}

/// The byte that the escape at `at` encodes; `None` for an incomplete escape.
fn escaped(path: &[u8], at: usize) -> Option<u8> {
    let digit = |offset: usize| (*path.get(at + offset)? as char).to_digit(16);
    Some((digit(1)? * 16 + digit(2)?) as u8)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether the `%` at the start of `written` would form an escape together with the byte `next` of the path.
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
    // position in `out` of the last `%` that begins no escape
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

/// Removes `.` segments, and `..` segments with the segment before them; stops at the root.
fn resolve_dots(path: &[u8]) -> Result<Vec<u8>, InvalidPath> {
    if path.first() != Some(&b'/') {
        return Ok(path.to_vec());
    }
    let mut out = Vec::with_capacity(path.len());
    let mut segments = path[1..].split(|&byte| byte == b'/').peekable();
    // each iteration appends "/segment" or removes one; a final dot segment leaves its slash
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

/// Whether a segment is `.` or `..` with path parameters (RFC 3986, section 3.3), with `;` escaped or not.
fn is_dots_with_parameters(segment: &[u8]) -> bool {
    let name = segment.strip_prefix(b".").unwrap_or_default();
    let rest = name.strip_prefix(b".").unwrap_or(name);
    matches!(rest, [b';', ..] | [b'%', b'3', b'b' | b'B', ..])
}

#[cfg(test)]
mod tests;
