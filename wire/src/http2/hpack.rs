//! Header compression (RFC 7541): static and dynamic table, integers, Huffman code.

pub mod decoder;

pub mod encoder;

pub mod huffman;

pub mod integer;

pub mod table;

#[cfg(test)]
mod tests;

/// Initial size of a dynamic table, in bytes.
pub const TABLE_BYTES_DEFAULT: usize = 4096;

/// Overhead of an entry in the size of a table, in bytes.
pub const ENTRY_OVERHEAD: usize = 32;

/// Error: a header block cannot be decoded. The connection must end, since the tables of both ends differ from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecodable;
