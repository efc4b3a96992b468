//! Tree of one document.

use std::sync::Arc;

use crate::span::Span;

/// Value with its position. An alias has the position of its anchor.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Span of the value; for an empty value, of the key or the text before it.
    pub span: Span,
    /// Parsed value.
    pub value: Value,
}

/// Value of a node. Plain scalars are resolved by YAML 1.1, as in Kubernetes.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `~`, `null` or nothing.
    Null,
    /// `true`, `yes`, `on`, ...
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Number that is not an integer of 64 bits.
    Float(f64),
    /// Text; aliases share it.
    Text(Arc<str>),
    /// A sequence.
    List(Vec<Node>),
    /// Mapping in document order, with unique keys.
    Map(Vec<Entry>),
}

/// Entry of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Key of the entry.
    pub key: Key,
    /// Value of the entry.
    pub value: Node,
}

/// Key of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Span of the key.
    pub span: Span,
    /// Text of the key.
    pub text: Arc<str>,
}

impl Node {
    /// Returns the value under `key`, if the node is a mapping with that key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()
            .iter()
            .find(|entry| &*entry.key.text == key)
            .map(|entry| &entry.value)
    }

    /// Returns the span of the key `key`, or of the whole node if it has no such key.
    pub fn key_span(&self, key: &str) -> Span {
        self.entries()
            .iter()
            .find(|entry| &*entry.key.text == key)
            .map_or(self.span, |entry| entry.key.span)
    }

    /// Returns the entries; empty if the node is not a mapping.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the items; empty if the node is not a list.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the text, if the node is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Number of nodes of the tree.
    pub fn count(&self) -> usize {
        let values = self.entries().iter().map(|entry| &entry.value);
        1 + self
            .items()
            .iter()
            .chain(values)
            .map(Node::count)
            .sum::<usize>()
    }

    /// Returns the total length of the texts and keys of the tree, in bytes.
    pub fn text_bytes(&self) -> usize {
        let entries = self.entries().iter();
        let entries = entries.map(|entry| entry.key.text.len() + entry.value.text_bytes());
        let items = self.items().iter().map(Node::text_bytes);
        self.text().map_or(0, str::len) + entries.chain(items).sum::<usize>()
    }

    /// Number of levels of the tree.
    pub fn height(&self) -> usize {
        let values = self.entries().iter().map(|entry| &entry.value);
        1 + self
            .items()
            .iter()
            .chain(values)
            .map(Node::height)
            .max()
            .unwrap_or(0)
    }

    /// Returns the name of the value's type, for messages.
    pub fn describe(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}
