//! Path rewrites: the path changes, the query stays. Replaced literally; doubled slashes are not repaired.

use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderName;
use http::uri::PathAndQuery;

use crate::pattern::Pattern;

/// Request header with the authority before it was rewritten.
pub const ORIGINAL_HOST: HeaderName = HeaderName::from_static("x-envoy-original-host");

/// Carries the path and query from before a rewrite to the upstream and to the access log.
pub const ORIGINAL_PATH: HeaderName = HeaderName::from_static("x-envoy-original-path");

/// What kind of `uri` condition brought a request to its rule; decides what a rewrite replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchedUri {
    /// The whole path was compared: `exact` or `regex`.
    Whole,
    /// This many bytes were compared: the length of `prefix`, or 1 for a rule without a `uri` condition.
    Prefix(usize),
}

impl MatchedUri {
    /// A rule without a `uri` condition: it matches the prefix `/`.
    pub const ANY: Self = Self::Prefix(1);
}

/// A new path for a request.
#[derive(Clone, Debug)]
pub enum PathRewrite {
    /// The first bytes are replaced.
    Prefix {
        /// How many.
        len: usize,
        /// By what.
        with: Box<str>,
    },
    /// Every match of an expression is replaced.
    Regex {
        /// Not anchored.
        regex: Pattern,
        /// By what.
        with: Substitution,
    },
    /// The first match of an expression is replaced.
    ///
    /// Source: ServiceExport `spec.pathRewrite`.
    First {
        /// Not anchored.
        regex: Pattern,
        /// By what; groups are written as `${1}`.
        with: Box<str>,
    },
    /// The whole path is replaced.
    Whole(Box<str>),
}

impl PathRewrite {
    /// `rewrite.uri`: what it replaces depends on what matched.
    pub fn uri(matched: MatchedUri, with: &str) -> Self {
        match matched {
            MatchedUri::Prefix(len) => Self::Prefix {
                len,
                with: with.into(),
            },
            MatchedUri::Whole => Self::Whole(with.into()),
        }
    }

    /// `rewrite.uriRegexRewrite`: `regex` is used unanchored; `with` may hold `\0` to `\9`.
    pub fn regex(regex: Pattern, with: &str) -> Self {
        Self::Regex {
            regex,
            with: Substitution::parse(with),
        }
    }

    /// The new path and query; `None` when the path stays as it is.
    ///
    /// It stays when an expression leaves nothing of it, and when the result would not be legal in a request line. A
    /// result that lacks its first slash gets one, since nothing else can be sent.
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

    /// The new path alone, as configured; `None` when it stays as it is.
    pub(super) fn path<'a>(&'a self, path: &'a str) -> Option<Cow<'a, str>> {
        match self {
            // A prefix that ends within a character matched nothing of this path.
            Self::Prefix { len, with } => {
                let rest = path.get(*len..).unwrap_or_default();
                Some(Cow::Owned(format!("{with}{rest}")))
            }
            Self::Regex { regex, with } => with.apply(regex.compiled(), path).map(Cow::Owned),
            Self::First { regex, with } => {
                match regex.compiled().replace(path.as_bytes(), with.as_bytes()) {
                    Cow::Borrowed(_) => None,
                    // An expression on bytes can cut characters in two; such a path cannot be sent on.
                    Cow::Owned(path) => String::from_utf8(path).ok().map(Cow::Owned),
                }
            }
            Self::Whole(with) => Some(Cow::Borrowed(with)),
        }
    }
}

/// What a match is replaced by: text, and groups written as `\1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitution(Box<[Part]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Group(usize),
    Text(Box<str>),
}

impl Substitution {
    /// Reads a text in which a backslash and a digit represent a group, and two backslashes for one. Any other
    /// backslash matches itself.
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

    /// Replaces every match in `path`; `None` when nothing matches, or nothing is left of the path.
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
            // An expression on bytes can cut characters in two; such a path cannot be sent on.
            Cow::Owned(path) if path.is_empty() => None,
            Cow::Owned(path) => String::from_utf8(path).ok(),
        }
    }
}

#[cfg(test)]
mod tests;
