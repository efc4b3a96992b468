//! A read-only radix tree over byte strings that visits every key that starts a text, shortest first.
//!
//! Nodes are in one slice, the children of a node adjacent, with the first bytes of their labels in a separate slice: a
//! step down searches a few adjacent bytes and makes one comparison. Nothing recurses, so that a chain of ten thousand
//! prefixes of each other is as safe as any other set.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// No number at this node.
const NONE: u32 = u32::MAX;

/// A radix tree from byte strings to numbers below `u32::MAX`.
#[derive(Clone, Debug)]
pub(crate) struct Trie {
    nodes: Box<[Node]>,
    /// First label byte of the node with the same position.
    first_bytes: Box<[u8]>,
    labels: Box<[u8]>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    label_start: u32,
    label_len: u32,
    children_start: u32,
    children_len: u32,
    value: u32,
}

/// Builder of a [`Trie`].
#[derive(Debug, Default)]
pub(crate) struct TrieBuilder {
    values: BTreeMap<Box<[u8]>, u32>,
}

impl TrieBuilder {
    /// Adds a key unless it exists, and returns its number.
    pub(crate) fn insert(&mut self, key: Box<[u8]>, value: u32) -> u32 {
        debug_assert_ne!(value, NONE);
        *self.values.entry(key).or_insert(value)
    }

    /// Builds the tree, level by level.
    pub(crate) fn build(self) -> Trie {
        let sorted: Vec<(Box<[u8]>, u32)> = self.values.into_iter().collect();
        let mut trie = Growing::default();
        let mut todo = VecDeque::new();
        trie.push(&[]);
        todo.push_back(Todo {
            node: 0,
            keys: 0..sorted.len(),
            depth: 0,
        });
        while let Some(Todo {
            node,
            mut keys,
            depth,
        }) = todo.pop_front()
        {
            // keys are sorted: a key that ends here is the first one
            if let Some((key, value)) = sorted.get(keys.start)
                && keys.start < keys.end
                && key.len() == depth
            {
                trie.nodes[node].value = *value;
                keys.start += 1;
            }
            trie.nodes[node].children_start = trie.nodes.len() as u32;
            while keys.start < keys.end {
                let first = &sorted[keys.start].0;
                let byte = first[depth];
                let group = &sorted[keys.clone()];
                let end = keys.start + group.partition_point(|(key, _)| key[depth] <= byte);
                let shared = shared_len(&first[depth..], &sorted[end - 1].0[depth..]);
                todo.push_back(Todo {
                    node: trie.nodes.len(),
                    keys: keys.start..end,
                    depth: depth + shared,
                });
                trie.push(&first[depth..depth + shared]);
                trie.nodes[node].children_len += 1;
                keys.start = end;
            }
        }
        Trie {
            nodes: trie.nodes.into(),
            first_bytes: trie.first_bytes.into(),
            labels: trie.labels.into(),
        }
    }
}

/// A node whose children must still be built, from these sorted keys that share `depth` bytes.
struct Todo {
    node: usize,
    keys: Range<usize>,
    depth: usize,
}

#[derive(Default)]
struct Growing {
    nodes: Vec<Node>,
    first_bytes: Vec<u8>,
    labels: Vec<u8>,
}

impl Growing {
    fn push(&mut self, label: &[u8]) {
        let label_start = self.labels.len() as u32;
        self.labels.extend_from_slice(label);
        self.first_bytes.push(label.first().copied().unwrap_or(0));
        self.nodes.push(Node {
            label_start,
            label_len: label.len() as u32,
            children_start: 0,
            children_len: 0,
            value: NONE,
        });
    }
}

fn shared_len(left: &[u8], right: &[u8]) -> usize {
    left.iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count()
}

impl Trie {
    /// Visits the number of every key that is a prefix of `text`, shortest key first, and whether the key is all of
    /// `text`.
    pub(crate) fn walk(&self, text: &[u8], mut visit: impl FnMut(u32, bool)) {
        let mut node = &self.nodes[0];
        let mut rest = text;
        loop {
            if node.value != NONE {
                visit(node.value, rest.is_empty());
            }
            let Some(child) = rest.first().and_then(|&byte| self.child(node, byte)) else {
                return;
            };
            let Some(below) = rest.strip_prefix(self.label(child)) else {
                return;
            };
            (node, rest) = (child, below);
        }
    }

    /// Visits like [`walk`](Self::walk) in a tree of lower-case keys, ignoring the case of ASCII letters in `text`.
    pub(crate) fn walk_ignoring_case(&self, text: &[u8], mut visit: impl FnMut(u32, bool)) {
        let mut node = &self.nodes[0];
        let mut rest = text;
        loop {
            if node.value != NONE {
                visit(node.value, rest.is_empty());
            }
            let Some(child) = rest
                .first()
                .and_then(|&byte| self.child(node, byte.to_ascii_lowercase()))
            else {
                return;
            };
            let label = self.label(child);
            match rest.split_at_checked(label.len()) {
                Some((start, below)) if start.eq_ignore_ascii_case(label) => {
                    (node, rest) = (child, below)
                }
                _ => return,
            }
        }
    }

    /// Visits the number of every key that is a prefix of the reversed `text`, shortest key first.
    pub(crate) fn walk_backwards(&self, text: &[u8], mut visit: impl FnMut(u32)) {
        let mut node = &self.nodes[0];
        let mut rest = text;
        loop {
            if node.value != NONE {
                visit(node.value);
            }
            let Some(child) = rest.last().and_then(|&byte| self.child(node, byte)) else {
                return;
            };
            let label = self.label(child);
            let Some(kept) = rest.len().checked_sub(label.len()) else {
                return;
            };
            let (below, end) = rest.split_at(kept);
            if !end.iter().rev().eq(label) {
                return;
            }
            (node, rest) = (child, below);
        }
    }

    fn child(&self, node: &Node, byte: u8) -> Option<&Node> {
        let start = node.children_start as usize;
        let end = start + node.children_len as usize;
        let position = memchr::memchr(byte, &self.first_bytes[start..end])?;
        self.nodes.get(start + position)
    }

    fn label(&self, node: &Node) -> &[u8] {
        let start = node.label_start as usize;
        &self.labels[start..start + node.label_len as usize]
    }
}

#[cfg(test)]
mod tests;
