//! Path rewrites: change the path and keep the query. Replacements are literal; doubled slashes stay.

use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderName;
use http::uri::PathAndQuery;

use crate::pattern::Pattern;

/// Request header with the original authority before a rewrite.
pub const ORIGINAL_HOST: HeaderName = HeaderName::from_static("x-envoy-original-host");

/// Request header with the original path and query before a rewrite, for the upstream and the access log.
pub const ORIGINAL_PATH: HeaderName = HeaderName::from_static("x-envoy-original-path");

/// Kind of the `uri` condition that matched a request; determines the part that a rewrite replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchedUri {
    /// The whole path: `exact` or `regex`.
    Whole,
    /// A prefix of this length: that of `prefix`, or 1 for a rule without a `uri` condition.
    Prefix(usize),
}

impl MatchedUri {
    /// A rule without a `uri` condition, which matches the prefix `/`.
    pub const ANY: Self = Self::Prefix(1);
}

/// A path rewrite.
#[derive(Clone, Debug)]
pub enum PathRewrite {
    /// Replaces a prefix.
    Prefix {
        /// Length of the prefix.
        len: usize,
        /// Replacement.
        with: Box<str>,
    },
    /// Replaces every match of an expression.
    Regex {
        /// Expression, not anchored.
        regex: Pattern,
        /// Replacement.
        with: Substitution,
    },
    /// Replaces the first match of an expression.
    ///
    /// Source: ServiceExport `spec.pathRewrite`.
    First {
        /// Expression, not anchored.
        regex: Pattern,
        /// Replacement, with groups written as `${1}`.
        with: Box<str>,
    },
    /// Replaces the whole path.
    Whole(Box<str>),
}

impl PathRewrite {
    /// Creates a rewrite from `rewrite.uri`; the replaced part depends on the condition that matched.
    pub fn uri(matched: MatchedUri, with: &str) -> Self {
        match matched {
            MatchedUri::Prefix(len) => Self::Prefix {
                len,
                with: with.into(),
            },
            MatchedUri::Whole => Self::Whole(with.into()),
        }
    }

    /// Creates a rewrite from `rewrite.uriRegexRewrite`: `regex` is not anchored; `with` may contain `\0` to `\9`.
    pub fn regex(regex: Pattern, with: &str) -> Self {
        Self::Regex {
            regex,
            with: Substitution::parse(with),
        }
    }

    /// The new path and query; `None` if the path does not change.
    ///
    /// It does not change if an expression would leave it empty, or if the result would be invalid in a request line. A
    /// result without a leading slash gets one, since nothing else can be sent.
    pub fn apply(&self, path: &str, query: Option<&str>) -> Option<PathAndQuery> {
        let mut target = self.path(path)?.into_owned();
        if !target.starts_with('/') {
            target.insert(0, '/');
        }
        if let Some(query) = query {
            target.push('?');
            target.push_str(query);
        }
        PathAndQuery::from_maybe_shared(Bytes::from(target)).ok()
    }

    /// The new path alone, as configured; `None` if it does not change.
    pub(super) fn path<'a>(&'a self, path: &'a str) -> Option<Cow<'a, str>> {
        match self {
            // a prefix that ends within a character cannot have matched this path
            Self::Prefix { len, with } => {
                let rest = path.get(*len..).unwrap_or_default();
                Some(Cow::Owned(format!("{with}{rest}")))
            }
            Self::Regex { regex, with } => with.apply(regex.compiled(), path).map(Cow::Owned),
            Self::First { regex, with } => {
                match regex.compiled().replace(path.as_bytes(), with.as_bytes()) {
                    Cow::Borrowed(_) => None,
                    // an expression on bytes can split a character; such a path cannot be sent
                    Cow::Owned(path) => String::from_utf8(path).ok().map(Cow::Owned),
                }
            }
            Self::Whole(with) => Some(Cow::Borrowed(with)),
        }
    }
}

/// Replacement for a match: text, and groups written as `\1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitution(Box<[Part]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Group(usize),
    Text(Box<str>),
}

impl Substitution {
    /// Parses a text in which a backslash and a digit represent a group, and two backslashes represent one. Any other
    /// backslash is literal.
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            let next = if char == '\\' {
                chars.peek().copied()
            } else {
                None
            };
            match next.map(|next| (next, next.to_digit(10))) {
                Some((_, Some(group))) => {
                    chars.next();
                    if !literal.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut literal).into()));
                    }
                    parts.push(Part::Group(group as usize));
                }
                Some(('\\', None)) => {
                    chars.next();
                    literal.push('\\');
                }
                _ => literal.push(char),
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal.into()));
        }
        Self(parts.into())
    }

    /// Replaces every match in `path`; `None` if nothing matches or the result is empty.
    fn apply(&self, regex: &regex::bytes::Regex, path: &str) -> Option<String> {
        let replaced = regex.replace_all(path.as_bytes(), |groups: &regex::bytes::Captures<'_>| {
            let mut out = Vec::new();
            for part in &self.0 {
                match part {
                    Part::Group(number) => {
                        let group = groups.get(*number);
                        out.extend_from_slice(group.map_or(b"", |group| group.as_bytes()));
                    }
                    Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                }
            }
            out
        });
        match replaced {
            Cow::Borrowed(_) => None,
            // an expression on bytes can split a character; such a path cannot be sent
            Cow::Owned(path) if path.is_empty() => None,
            Cow::Owned(path) => String::from_utf8(path).ok(),
        }
    }
}

#[cfg(test)]
mod tests;
