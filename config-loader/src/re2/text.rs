//! Unparsed rest of an expression, and the current flags.

use std::iter::Peekable;
use std::str::CharIndices;

/// Flags that `(?ims)` sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    /// `i`
    pub(super) fold: bool,
    /// `m`
    pub(super) lines: bool,
    /// `s`
    pub(super) dot_is_all: bool,
    /// `U`
    pub(super) swap_greed: bool,
}

/// Unparsed rest of an expression.
#[derive(Clone, Debug)]
pub(super) struct Text<'a> {
    source: &'a str,
    rest: Peekable<CharIndices<'a>>,
}

impl<'a> Text<'a> {
    pub(super) fn new(source: &'a str) -> Text<'a> {
        Text {
            source,
            rest: source.char_indices().peekable(),
        }
    }

    pub(super) fn next(&mut self) -> Option<(usize, char)> {
        self.rest.next()
    }

    pub(super) fn peek(&mut self) -> Option<char> {
        self.rest.peek().map(|(_, c)| *c)
    }

    /// Byte offset of the rest.
    pub(super) fn at(&mut self) -> usize {
        self.rest.peek().map_or(self.source.len(), |(at, _)| *at)
    }

    /// Returns the rest.
    pub(super) fn rest(&mut self) -> &'a str {
        let at = self.at();
        &self.source[at..]
    }

    /// Consumes the next character if it is `wanted`.
    pub(super) fn eat(&mut self, wanted: char) -> bool {
        self.rest.next_if(|(_, c)| *c == wanted).is_some()
    }

    /// Skips this number of bytes.
    pub(super) fn skip(&mut self, bytes: usize) {
        let end = self.at() + bytes;
        while self.rest.next_if(|(at, _)| *at < end).is_some() {}
    }

    /// Returns the text that was consumed since `start`.
    pub(super) fn since(&mut self, start: usize) -> &'a str {
        let at = self.at();
        &self.source[start..at]
    }
}
