//! The tree of one document.

use std::sync::Arc;

use crate::span::Span;

/// A value and where it stands. An alias stands where its anchor does.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it stands; for what is written as nothing, the key or the place before it.
    pub span: Span,
    /// What it is.
    pub value: Value,
}

/// What a node is. Plain scalars are resolved as Kubernetes does it, by YAML 1.1.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `~`, `null` or nothing.
    Null,
    /// `true`, `yes`, `on`, ...
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text, which aliases share.
    Text(Arc<str>),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order in which it was written, its keys unique.
    Map(Vec<Entry>),
}

/// One entry of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its key.
    pub key: Key,
    /// Its value.
    pub value: Node,
}

/// The key of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Where it stands.
    pub span: Span,
    /// What it says.
    pub text: Arc<str>,
}

impl Node {
    /// The value under `key`, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()
            .iter()
            .find(|entry| &*entry.key.text == key)
            .map(|entry| &entry.value)
    }

    /// The span of the key `key`, or of the whole node if it has none.
    pub fn key_span(&self, key: &str) -> Span {
        self.entries()
            .iter()
            .find(|entry| &*entry.key.text == key)
            .map_or(self.span, |entry| entry.key.span)
    }

    /// The entries, none if this is no mapping.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items, none if this is no list.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// How many nodes the tree has.
    pub fn count(&self) -> usize {
        let values = self.entries().iter().map(|entry| &entry.value);
        1 + self
            .items()
            .iter()
            .chain(values)
            .map(Node::count)
            .sum::<usize>()
    }

    /// Sum of the lengths of the texts and keys of the tree, in bytes.
    pub fn text_bytes(&self) -> usize {
        let entries = self.entries().iter();
        let entries = entries.map(|entry| entry.key.text.len() + entry.value.text_bytes());
        let items = self.items().iter().map(Node::text_bytes);
        self.text().map_or(0, str::len) + entries.chain(items).sum::<usize>()
    }

    /// How many levels the tree has.
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

    /// The word for what it is, for messages.
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
