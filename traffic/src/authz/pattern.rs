//! Values of conditions on texts.

use crate::claims::Claims;

/// Value of a condition on a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// The same bytes.
    Exact(Box<str>),
    /// Starts with these bytes.
    Prefix(Box<str>),
    /// Ends with these bytes.
    Suffix(Box<str>),
    /// Any text that is not empty.
    Any,
    /// Any text, also an empty one.
    Present,
    /// `*` matches any run of characters, also none.
    Glob(Box<str>),
    /// Path template: `{*}` matches one segment, `{**}` the rest.
    Template(Box<str>),
}

impl Pattern {
    /// Returns the pattern of a value with at most one wildcard, at its beginning or end.
    pub fn of(text: &str) -> Self {
        if text == "*" {
            Self::Any
        } else if let Some(prefix) = text.strip_suffix('*') {
            Self::Prefix(prefix.into())
        } else if let Some(suffix) = text.strip_prefix('*') {
            Self::Suffix(suffix.into())
        } else {
            Self::Exact(text.into())
        }
    }

    /// Returns the pattern of a path: a template, or as [`Pattern::of`].
    pub fn of_path(text: &str) -> Self {
        match text.contains("{*}") || text.contains("{**}") {
            true => Self::Template(text.into()),
            false => Self::of(text),
        }
    }

    /// Whether a text has the pattern. With `folds`, letters of patterns are in lower case and those of the text in any.
    pub fn matches(&self, text: &[u8], folds: bool) -> bool {
        let is_same = |wanted: &str, text: &[u8]| match folds {
            true => wanted.as_bytes().eq_ignore_ascii_case(text),
            false => wanted.as_bytes() == text,
        };
        match self {
            Self::Exact(wanted) => is_same(wanted, text),
            Self::Prefix(wanted) => text
                .get(..wanted.len())
                .is_some_and(|start| is_same(wanted, start)),
            Self::Suffix(wanted) => text
                .len()
                .checked_sub(wanted.len())
                .is_some_and(|start| is_same(wanted, &text[start..])),
            Self::Any => !text.is_empty(),
            Self::Present => true,
            Self::Glob(glob) => matches_glob(glob.as_bytes(), text),
            Self::Template(template) => matches_template(template.as_bytes(), text),
        }
    }

    /// Returns the value as written.
    pub fn written(&self) -> String {
        match self {
            Self::Exact(text) | Self::Glob(text) | Self::Template(text) => text.to_string(),
            Self::Prefix(text) => format!("{text}*"),
            Self::Suffix(text) => format!("*{text}"),
            Self::Any | Self::Present => "*".to_owned(),
        }
    }
}

fn matches_glob(glob: &[u8], text: &[u8]) -> bool {
    let mut parts = glob.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let found = memchr::memmem::find(rest, part);
        let Some(at) = found else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Source: Envoy's URI template match (`envoy.path.match.uri_template`).
fn matches_template(mut template: &[u8], mut path: &[u8]) -> bool {
    loop {
        let (segment, rest) = first_segment(template);
        if let Some(suffix) = template.strip_prefix(b"{**}") {
            return path.ends_with(suffix);
        }
        let (text, path_rest) = first_segment(path);
        let fits = match segment {
            b"{*}" => !text.is_empty(),
            literal => literal == text,
        };
        match (fits, rest, path_rest) {
            (true, Some(rest), Some(path_rest)) => (template, path) = (rest, path_rest),
            (fits, None, None) => return fits,
            _ => return false,
        }
    }
}

/// Returns the text before the first slash, and the one after it.
fn first_segment(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'/', text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// Value of a condition on the request principal: issuer and subject of a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestPrincipal {
    issuer: Pattern,
    subject: Pattern,
}

impl RequestPrincipal {
    /// Reads a value: issuer and subject, separated by its last slash.
    ///
    /// Source: Istio's generator of `requestPrincipals`.
    pub fn of(text: &str) -> Self {
        let (issuer, subject) = match text.rsplit_once('/') {
            _ if text == "*" => (Pattern::Any, Pattern::Any),
            Some((issuer, subject)) => (
                match issuer.strip_prefix('*') {
                    Some("") => Pattern::Any,
                    Some(suffix) => Pattern::Suffix(suffix.into()),
                    None => Pattern::Exact(issuer.into()),
                },
                match subject.strip_suffix('*') {
                    Some("") => Pattern::Any,
                    Some(prefix) => Pattern::Prefix(prefix.into()),
                    None => Pattern::Exact(subject.into()),
                },
            ),
            None => match (text.strip_suffix('*'), text.strip_prefix('*')) {
                (Some(prefix), _) => (Pattern::Prefix(prefix.into()), Pattern::Any),
                (None, Some(suffix)) => (Pattern::Any, Pattern::Suffix(suffix.into())),
                (None, None) => (Pattern::Exact(text.into()), Pattern::Exact("".into())),
            },
        };
        Self { issuer, subject }
    }

    /// Whether these claims have the principal. Claims without a subject have none.
    pub fn matches(&self, claims: &Claims) -> bool {
        let subject = claims.subject().filter(|subject| !subject.is_empty());
        let (Some(issuer), Some(subject)) = (claims.issuer(), subject) else {
            return false;
        };
        self.issuer.matches(issuer.as_bytes(), false)
            && self.subject.matches(subject.as_bytes(), false)
    }

    /// Returns the value as written.
    pub fn written(&self) -> String {
        format!("{}/{}", self.issuer.written(), self.subject.written())
    }
}
