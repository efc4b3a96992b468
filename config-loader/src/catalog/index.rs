//! Map from hosts and wildcards to values.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Map with exact hosts or wildcards as keys (`*.example.com`, `*-api.example.com`, `*`).
///
/// A lookup costs one hash of each wildcard length that occurs, however many wildcards there are.
#[derive(Clone, Debug)]
pub struct HostIndex<T> {
    by_host: HashMap<Arc<str>, T>,
    /// Number of wildcards by their length in bytes, `*` included.
    wildcards: BTreeMap<usize, usize>,
}

impl<T> Default for HostIndex<T> {
    fn default() -> Self {
        Self {
            by_host: HashMap::new(),
            wildcards: BTreeMap::new(),
        }
    }
}

impl<T> HostIndex<T> {
    /// Creates an empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the value of this exact host or wildcard; inserts the default if there is none.
    pub fn entry(&mut self, host: &str) -> &mut T
    where
        T: Default,
    {
        if !self.by_host.contains_key(host) && host.starts_with('*') {
            *self.wildcards.entry(host.len()).or_default() += 1;
        }
        self.by_host.entry(host.into()).or_default()
    }

    /// Sets the value of this exact host or wildcard; returns the previous value.
    pub fn insert(&mut self, host: impl Into<Arc<str>>, value: T) -> Option<T> {
        let host = host.into();
        let wildcard = host.starts_with('*').then_some(host.len());
        let before = self.by_host.insert(host, value);
        if let (None, Some(length)) = (&before, wildcard) {
            *self.wildcards.entry(length).or_default() += 1;
        }
        before
    }

    /// Removes the value of this exact host or wildcard.
    pub fn remove(&mut self, host: &str) -> Option<T> {
        let before = self.by_host.remove(host)?;
        if host.starts_with('*')
            && let Some(count) = self.wildcards.get_mut(&host.len())
        {
            *count -= 1;
            if *count == 0 {
                self.wildcards.remove(&host.len());
            }
        }
        Some(before)
    }

    /// Returns the value of this exact host or wildcard.
    pub fn get(&self, host: &str) -> Option<&T> {
        self.by_host.get(host)
    }

    /// Returns a mutable reference to the value of this exact host or wildcard.
    pub fn get_mut(&mut self, host: &str) -> Option<&mut T> {
        self.by_host.get_mut(host)
    }

    /// Returns the value that applies to a host: the exact match, otherwise the longest wildcard that covers it.
    pub fn find(&self, host: &str) -> Option<&T> {
        self.covering(host).next()
    }

    /// Returns the values of all names that cover a host or wildcard, most specific first.
    pub fn covering<'i>(&'i self, host: &str) -> impl Iterator<Item = &'i T> {
        let own = self.by_host.get(host);
        // `*.com` does not cover `.com`: a wildcard matches one character at least
        let longest = match host.strip_prefix('*') {
            Some(_) => host.len().saturating_sub(1),
            None => host.len(),
        };
        let lengths = self.wildcards.range(..=longest).rev();
        let covering = lengths.filter_map(|(length, _)| {
            let suffix = host.get(host.len() - (length - 1)..)?;
            self.wildcard(suffix)
        });
        let covering: Vec<&T> = covering.collect();
        own.into_iter().chain(covering)
    }

    /// Returns the value of `*` followed by this suffix.
    fn wildcard(&self, suffix: &str) -> Option<&T> {
        const STACK_MAX: usize = 256; // longer than any host
        let mut name = [b'*'; STACK_MAX];
        let name = name.get_mut(..=suffix.len())?;
        name[1..].copy_from_slice(suffix.as_bytes());
        self.by_host.get(std::str::from_utf8(name).ok()?)
    }

    /// Iterates over every host and wildcard with its value, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &T)> {
        self.by_host.iter()
    }

    /// Iterates mutably over every value, in no particular order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.by_host.values_mut()
    }

    /// Number of hosts and wildcards with a value.
    pub fn len(&self) -> usize {
        self.by_host.len()
    }

    /// Whether no host has a value.
    pub fn is_empty(&self) -> bool {
        self.by_host.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::hostname;
    use super::*;

    /// Generates hosts and wildcards over a small alphabet, so that many cover each other.
    fn name() -> impl Strategy<Value = String> {
        "(\\*)?([ab]|\\.a|\\.b){0,4}".prop_filter("no empty name", |name| !name.is_empty())
    }

    proptest! {
        #[test]
        fn lookup_equals_a_scan_of_all_names(
            names in proptest::collection::vec(name(), 0..12),
            gone in proptest::collection::vec(name(), 0..4),
            host in name(),
        ) {
            let mut index = HostIndex::new();
            for name in &names {
                index.insert(&**name, name.clone());
            }
            for name in &gone {
                index.remove(name);
            }
            let mut wanted: Vec<&String> = names
                .iter()
                .filter(|name| !gone.contains(name) && hostname::is_subset(&host, name))
                .collect();
            wanted.sort_by_key(|name| std::cmp::Reverse(hostname::specificity(name)));
            wanted.dedup();
            let found: Vec<&String> = index.covering(&host).collect();
            prop_assert_eq!(&found, &wanted);
            prop_assert_eq!(index.find(&host), wanted.first().copied());
        }
    }

    #[test]
    fn longest_wildcard_applies() {
        let mut index = HostIndex::new();
        for name in ["*", "*.com", "*.a.com", "*oo.com", "x.a.com"] {
            index.insert(name, name);
        }
        for (host, wanted) in [
            ("x.a.com", "x.a.com"),
            ("y.a.com", "*.a.com"),
            ("a.com", "*.com"),
            ("foo.com", "*oo.com"),
            ("oo.com", "*.com"),
            (".com", "*"),
            ("*.a.com", "*.a.com"),
            ("*.b.com", "*.com"),
            ("org", "*"),
        ] {
            assert_eq!(index.find(host), Some(&wanted), "{host}");
        }
    }
}
