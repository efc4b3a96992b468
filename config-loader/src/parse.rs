//! Parser: text to raw types, strictly, without interpreting values. Uses `raw`, `span` and `diagnostic`.
//!
//! YAML and JSON take the same steps: bytes are checked to be UTF-8, a file is split into documents, a document becomes
//! a tree of [`Node`]s, and a tree becomes a raw type. Every step reports all errors, not only the first. A tree is
//! dropped after its document was read.

mod access;
mod brackets;
mod builder;
mod de;
mod expansion;
mod json;
mod mapping;
mod node;
mod offsets;
mod path;
mod reader;
mod scalar;
mod schema;
mod split;
mod surrogates;
mod write;

pub use builder::tree;
pub(crate) use builder::tree_after;
pub(crate) use expansion::Expansion;
pub use json::{json, location_of};
pub use node::{Entry, Key, Node, Value};
pub use path::locate;
pub(crate) use path::place_all;
pub use reader::Reader;
pub use schema::{FieldInfo, fields_of};
pub use split::{Chunk, split};
pub use write::to_yaml;

/// Maximum size of one file, in bytes.
pub const FILE_BYTES_MAX: u64 = 32 << 20;

/// Maximum number of nodes (scalars, lists, mappings) of one document.
pub const DOCUMENT_NODES_MAX: usize = 1_000_000;

/// Maximum number of nodes that the aliases and merge keys of one file expand to.
pub const ALIAS_NODES_MAX: usize = 100_000;

/// Maximum size of texts and keys that the aliases and merge keys of one file expand to, in bytes. Readers copy these
/// texts.
pub const ALIAS_BYTES_MAX: usize = 4 << 20;

/// Maximum size of expanded aliases of one document, as a multiple of the document's own size.
pub const ALIAS_BYTES_RATIO: usize = 100;

/// Maximum nesting depth of lists and mappings.
pub const DEPTH_MAX: usize = 64;

#[cfg(test)]
mod tests;
