//! Compiled regular expressions with the text of the user: the engine compiles a translated syntax.

use std::sync::Arc;

use regex::bytes::Regex;

/// A compiled regular expression on bytes, shared with the resource.
#[derive(Clone, Debug)]
pub struct Pattern(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    written: Arc<str>,
    compiled: Arc<Regex>,
}

impl Pattern {
    /// Combines the text of the user with its compiled form. An expression that must match a whole value is anchored as
    /// `\A(?:...)\z`.
    pub fn new(written: Arc<str>, compiled: Arc<Regex>) -> Self {
        Self(Arc::new(Shared { written, compiled }))
    }

    /// The text of the user.
    pub fn written(&self) -> &str {
        &self.0.written
    }

    /// The compiled expression.
    pub fn compiled(&self) -> &Regex {
        &self.0.compiled
    }

    /// Whether the expression matches.
    pub fn is_match(&self, value: &[u8]) -> bool {
        self.0.compiled.is_match(value)
    }

    /// Whether an anchored expression would match a part of the value. Compiles it again without anchors.
    pub fn matches_part(&self, value: &[u8]) -> bool {
        let anchored = self.0.compiled.as_str();
        let inner = anchored.strip_prefix(r"\A(?:");
        let inner = inner.and_then(|inner| inner.strip_suffix(r")\z"));
        let part = inner.and_then(|inner| Regex::new(inner).ok());
        part.is_some_and(|part| part.find(value).is_some_and(|found| !found.is_empty()))
    }
}

#[cfg(test)]
impl Pattern {
    /// An expression with the same syntax in both, anchored to the whole value.
    pub(crate) fn whole(written: &str) -> Self {
        let anchored = format!(r"\A(?:{written})\z");
        Self::new(written.into(), Arc::new(Regex::new(&anchored).unwrap()))
    }

    /// An expression with the same syntax in both, which may match any part of a value.
    pub(crate) fn part(written: &str) -> Self {
        Self::new(written.into(), Arc::new(Regex::new(written).unwrap()))
    }
}
