//! Header blocks to fields (RFC 7541, section 6).

use super::table::{Field, Name, Table};
use super::{ENTRY_OVERHEAD, Undecodable, huffman, integer};

/// Maximum scratch memory kept between blocks, in bytes.
const SCRATCH_BYTES_MAX: usize = 4096;

/// Receives the fields of a block.
pub trait Sink {
    /// Whether a field of this size is wanted.
    fn wants(&mut self, size: usize) -> bool;

    /// Receives a wanted field.
    fn field(&mut self, field: Field);
}

/// Decoder of a connection's header blocks.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    scratch: Vec<u8>,
}

impl Decoder {
    /// Returns a decoder with a table of at most this size, as RFC 7541 counts it.
    pub fn new(table_bytes_max: usize) -> Self {
        Self {
            table: Table::new(table_bytes_max),
            scratch: Vec::new(),
        }
    }

    /// Size of the dynamic table, as RFC 7541 counts it.
    pub fn table_bytes(&self) -> usize {
        self.table.size()
    }

    /// Decodes a complete block, even if the sink rejects fields: the table must stay in step.
    ///
    /// # Errors
    ///
    /// If it cannot be decoded; the connection must end then.
    pub fn decode(&mut self, mut block: &[u8], sink: &mut impl Sink) -> Result<(), Undecodable> {
        let mut fields = false;
        while let Some(&first) = block.first() {
            let used = match first {
                0x80.. => self.indexed(block, sink)?,
                0x40..=0x7f => self.literal(block, 6, sink)?,
                0x20..=0x3f if fields => return Err(Undecodable),
                0x20..=0x3f => {
                    let (size, used) = integer::read(block, 5)?.ok_or(Undecodable)?;
                    self.table.resize(size)?;
                    block = &block[used..];
                    continue;
                }
                0..=0x1f => self.literal(block, 4, sink)?,
            };
            fields = true;
            block = &block[used..];
        }
        if self.scratch.capacity() > SCRATCH_BYTES_MAX {
            self.scratch = Vec::new();
        }
        Ok(())
    }

    #[inline]
    fn indexed(&mut self, block: &[u8], sink: &mut impl Sink) -> Result<usize, Undecodable> {
        let (index, used) = integer::read(block, 7)?.ok_or(Undecodable)?;
        if sink.wants(self.table.size_of(index)?) {
            sink.field(self.table.field(index)?.0);
        }
        Ok(used)
    }

    /// Decodes a literal field; its name is an index of `prefix` bits, or follows.
    fn literal(
        &mut self,
        block: &[u8],
        prefix: u32,
        sink: &mut impl Sink,
    ) -> Result<usize, Undecodable> {
        let adds = prefix == 6;
        let sensitive = !adds && block[0] & 0x10 != 0;
        let (index, mut at) = integer::read(block, prefix)?.ok_or(Undecodable)?;
        let (name, name_len) = if index == 0 {
            let (text, used) = string(&block[at..], &mut self.scratch)?;
            at += used;
            (Name::parse(text), text.len())
        } else {
            self.table.name(index)?
        };
        let (value, used) = string(&block[at..], &mut self.scratch)?;
        let size = name_len + value.len() + ENTRY_OVERHEAD;
        let wanted = sink.wants(size);
        if wanted || adds {
            let field = Field::parse(name, value, sensitive);
            match (wanted, adds) {
                (true, true) => {
                    sink.field(field.clone());
                    self.table.add(field, size);
                }
                (true, false) => sink.field(field),
                (false, _) => self.table.add(field, size),
            }
        }
        Ok(at + used)
    }
}

/// Decodes a string (RFC 7541, section 5.2); also returns its encoded length.
#[inline]
fn string<'a>(block: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<(&'a [u8], usize), Undecodable> {
    let (len, used) = integer::read(block, 7)?.ok_or(Undecodable)?;
    let text = block.get(used..used + len).ok_or(Undecodable)?;
    if block[0] & 0x80 == 0 {
        return Ok((text, used + len));
    }
    scratch.clear();
    huffman::decode(text, scratch)?;
    Ok((scratch, used + len))
}
