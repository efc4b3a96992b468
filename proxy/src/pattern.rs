//! Regular expressions, compiled, with the text that the user wrote: the engine has it in a syntax of its own.

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
    /// An expression and what it compiles to. Where the whole of a value must match, that is anchored as
    /// `\A(?:...)\z`.
    pub fn new(written: Arc<str>, compiled: Arc<Regex>) -> Self {
        Self(Arc::new(Shared { written, compiled }))
    }

    /// What the user wrote.
    pub fn written(&self) -> &str {
        &self.0.written
    }

    /// What it compiles to.
    pub fn compiled(&self) -> &Regex {
        &self.0.compiled
    }

    /// Whether it matches.
    pub fn is_match(&self, value: &[u8]) -> bool {
        self.0.compiled.is_match(value)
    }

    /// Whether a part of a value matches an expression that has to match the whole of it. Compiles the expression once more.
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
    /// One that is the same in both syntaxes, and has to match the whole of a value.
    pub(crate) fn whole(written: &str) -> Self {
        let anchored = format!(r"\A(?:{written})\z");
        Self::new(written.into(), Arc::new(Regex::new(&anchored).unwrap()))
    }

    /// One that is the same in both syntaxes, and may match any part of a value.
    pub(crate) fn part(written: &str) -> Self {
        Self::new(written.into(), Arc::new(Regex::new(written).unwrap()))
    }
}
