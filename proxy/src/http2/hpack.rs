//! Header compression (RFC 7541): static and dynamic table, integers, Huffman code.

pub mod decoder;

pub mod encoder;

pub mod huffman;

pub mod integer;

pub mod table;

#[cfg(test)]
mod tests;

/// Size of a dynamic table before anything was said about it.
pub const TABLE_BYTES_DEFAULT: usize = 4096;

/// What an entry of a table counts on top of its bytes.
pub const ENTRY_OVERHEAD: usize = 32;

/// A header block that cannot be decoded; the connection is lost, since both ends no longer agree on the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecodable;
