//! Text to raw types, strictly; knows no meaning. Uses `raw`, `span` and `diagnostic`.
//!
//! YAML and JSON walk one way: bytes are checked to be UTF-8, a file is split into documents, a document becomes a
//! tree of [`Node`]s, and a tree becomes a raw type. Every step records all that is wrong, not only the first.
//! Trees live only while their document is read.

mod access;
mod brackets;
mod builder;
mod de;
mod expansion;
mod mapping;
mod node;
mod offsets;
mod path;
mod reader;
mod scalar;
mod schema;
mod split;
mod surrogates;

pub use builder::tree;
pub(crate) use builder::tree_after;
pub(crate) use expansion::Expansion;
pub use node::{Entry, Key, Node, Value};
pub use path::locate;
pub(crate) use path::place_all;
pub use reader::Reader;
pub use schema::{FieldInfo, fields_of};
pub use split::{Chunk, split};

/// How large the text of one file may be, in bytes.
pub const FILE_BYTES_MAX: u64 = 32 << 20;

/// How many nodes (scalars, lists, mappings) one document may have.
pub const DOCUMENT_NODES_MAX: usize = 1_000_000;

/// Most nodes that the aliases and merge keys of one file may represent.
pub const ALIAS_NODES_MAX: usize = 100_000;

/// Most bytes of texts and keys that the aliases and merge keys of one file may expand to: readers of the tree copy them.
pub const ALIAS_BYTES_MAX: usize = 4 << 20;

/// Most bytes that those of one document may expand to, as a multiple of the document's own.
pub const ALIAS_BYTES_RATIO: usize = 100;

/// How deep lists and mappings may be nested.
pub const DEPTH_MAX: usize = 64;

#[cfg(test)]
mod tests;
