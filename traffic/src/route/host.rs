//! The host index: exact name, then the longest wildcard suffix, then `*`; no fall-through.

use std::borrow::Cow;

use super::byte_map::ByteMap;
use super::trie::{Trie, TrieBuilder};

/// Values by host pattern.
///
/// A pattern is a name, `*`, or `*` and a suffix: `*.a.com` and `*foo.com` match every longer host with that suffix.
/// Patterns are compared in lower case and without a trailing dot, like the result of [`normalize_host`].
#[derive(Clone, Debug)]
pub struct HostIndex<T> {
    entries: Box<[(Box<str>, T)]>,
    exact: ByteMap,
    /// Suffixes, reversed.
    suffixes: Trie,
    any: Option<u32>,
}

impl<T> HostIndex<T> {
    /// Indexes `entries`; the first of equal patterns wins.
    pub fn new(entries: impl IntoIterator<Item = (impl AsRef<str>, T)>) -> Self {
        let mut kept: Vec<(Box<str>, T)> = Vec::new();
        let mut exact = ByteMap::builder();
        let mut suffixes = TrieBuilder::default();
        let mut any = None;
        for (pattern, value) in entries {
            let pattern = normalize_pattern(pattern.as_ref());
            let number = kept.len() as u32;
            let fresh = match pattern.strip_prefix('*') {
                Some("") => *any.get_or_insert(number) == number,
                Some(suffix) => suffixes.insert(suffix.bytes().rev().collect(), number) == number,
                None => exact.insert(pattern.as_bytes(), number) == number,
            };
            if fresh {
                kept.push((pattern, value));
            }
        }
        Self {
            entries: kept.into_boxed_slice(),
            exact: exact.build(),
            suffixes: suffixes.build(),
            any,
        }
    }

    /// The value for a host that was normalized by [`normalize_host`].
    pub fn find(&self, host: &str) -> Option<&T> {
        self.find_with_pattern(host).map(|(_, value)| value)
    }

    /// Finds a value like [`find`](Self::find), together with the matching pattern.
    pub fn find_with_pattern(&self, host: &str) -> Option<(&str, &T)> {
        let number = self
            .exact
            .find(host.as_bytes())
            .or_else(|| self.longest_suffix(host))
            .or(self.any)?;
        let (pattern, value) = &self.entries[number as usize];
        Some((pattern, value))
    }

    /// The value of `*`.
    pub fn any(&self) -> Option<&T> {
        let (_, value) = &self.entries[self.any? as usize];
        Some(value)
    }

    /// Patterns with their values, in the original order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries
            .iter()
            .map(|(pattern, value)| (&**pattern, value))
    }

    /// Number of patterns.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn longest_suffix(&self, host: &str) -> Option<u32> {
        let mut longest = None;
        // the `*` matches at least one byte, so the first byte is never part of a suffix
        let suffix_space = host.as_bytes().get(1..)?;
        self.suffixes
            .walk_backwards(suffix_space, |number| longest = Some(number));
        longest
    }
}

impl<T> Default for HostIndex<T> {
    fn default() -> Self {
        Self::new(std::iter::empty::<(&str, T)>())
    }
}

fn normalize_pattern(pattern: &str) -> Box<str> {
    let pattern = pattern.strip_suffix('.').unwrap_or(pattern);
    pattern.to_ascii_lowercase().into_boxed_str()
}

/// Normalizes an authority for virtual host lookup: without port, without one trailing dot, in lower case.
///
/// Borrows unless there is an upper-case letter. An IPv6 address keeps its brackets.
pub fn normalize_host(authority: &str) -> Cow<'_, str> {
    let host = without_port(authority);
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

/// Removes the port. Searches backwards over digits, since ports are shorter than hosts.
fn without_port(authority: &str) -> &str {
    let bytes = authority.as_bytes();
    let last = bytes.iter().rposition(|byte| !byte.is_ascii_digit());
    match last {
        Some(colon) if bytes[colon] == b':' => &authority[..colon],
        _ => authority,
    }
}

#[cfg(test)]
mod tests;
