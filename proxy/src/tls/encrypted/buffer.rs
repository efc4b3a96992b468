//! Buffers that are borrowed from the worker while they contain bytes.

use std::cell::RefCell;
use std::io::{self, IoSlice};

use tokio::io::ReadBuf;

use super::record::{RECORD_BYTES_MAX, RECORD_OVERHEAD_MAX, WRITE_BYTES_MAX};

/// Bytes per read from a socket: more than the longest record.
const INCOMING_BYTES: usize = 32 * 1024;

/// Maximum bytes kept until they can be processed: a handshake message of 64 KiB in many records.
const INCOMING_BYTES_MAX: usize = 96 * 1024;

/// Buffer size for the bytes accepted by one write.
const OUTGOING_BYTES: usize = WRITE_BYTES_MAX + 8 * RECORD_OVERHEAD_MAX;

/// Maximum spare buffers of each kind per worker.
const SPARE_MAX: usize = 8;

thread_local! {
    // Not in the worker's own state, since a connection that switches protocols must be `Send`.
    static SPARE: SpareBuffers = const { SpareBuffers::new() };
}

/// Spare buffers of a worker.
struct SpareBuffers {
    incoming: RefCell<Vec<Vec<u8>>>,
    outgoing: RefCell<Vec<Vec<u8>>>,
    together: RefCell<Vec<u8>>,
}

impl SpareBuffers {
    const fn new() -> Self {
        Self {
            incoming: RefCell::new(Vec::new()),
            outgoing: RefCell::new(Vec::new()),
            together: RefCell::new(Vec::new()),
        }
    }

    fn of(&self, kind: Kind) -> &RefCell<Vec<Vec<u8>>> {
        match kind {
            Kind::Incoming => &self.incoming,
            Kind::Outgoing => &self.outgoing,
        }
    }
}

/// Kind of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Incoming,
    Outgoing,
}

impl Kind {
    fn size(self) -> usize {
        match self {
            Kind::Incoming => INCOMING_BYTES,
            Kind::Outgoing => OUTGOING_BYTES,
        }
    }

    fn borrow(self) -> Vec<u8> {
        let spare = SPARE.with(|spare| spare.of(self).borrow_mut().pop());
        spare.unwrap_or_else(|| vec![0; self.size()])
    }

    fn give_back(self, bytes: Vec<u8>) {
        // Fails only while the thread ends.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.of(self).borrow_mut();
            if spare.len() < SPARE_MAX && bytes.len() == self.size() {
                spare.push(bytes);
            }
        });
    }
}

/// Queue of bytes. Holds memory only while it contains some.
#[derive(Debug)]
pub(super) struct Buffer {
    kind: Kind,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// Returns a buffer for bytes read from a socket.
    pub(super) fn incoming() -> Self {
        Self::empty(Kind::Incoming)
    }

    /// Returns a buffer for bytes to write to a socket.
    pub(super) fn outgoing() -> Self {
        Self::empty(Kind::Outgoing)
    }

    fn empty(kind: Kind) -> Self {
        Self {
            kind,
            bytes: Vec::new(),
            start: 0,
            end: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Removes bytes at the front.
    pub(super) fn discard(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.is_empty() {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Releases the memory of an empty buffer.
    pub(super) fn release_if_empty(&mut self) {
        if self.is_empty() && !self.bytes.is_empty() {
            self.kind.give_back(std::mem::take(&mut self.bytes));
        }
    }

    /// Allocated bytes.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns free space to read into.
    pub(super) fn space(&mut self) -> io::Result<&mut [u8]> {
        if self.bytes.is_empty() {
            self.bytes = self.kind.borrow();
        }
        if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.end == INCOMING_BYTES_MAX {
                let text = "a TLS message is too long";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            if self.end == self.bytes.len() {
                let longer = (2 * self.end).min(INCOMING_BYTES_MAX);
                self.bytes.resize(longer, 0);
            }
        }
        Ok(&mut self.bytes[self.end..])
    }

    /// Marks bytes of [`Buffer::space`] as filled.
    pub(super) fn fill(&mut self, count: usize) {
        self.end += count;
    }

    /// Appends the bytes that `write` puts into the free space; it returns their number, or as error the space that it
    /// needs.
    pub(super) fn append(
        &mut self,
        mut write: impl FnMut(&mut [u8]) -> Result<usize, usize>,
    ) -> Result<(), rustls::Error> {
        if self.bytes.is_empty() {
            self.bytes = self.kind.borrow();
        }
        let written = match write(&mut self.bytes[self.end..]) {
            Ok(written) => written,
            Err(needed) => {
                self.bytes.resize(self.end + needed, 0);
                let again = write(&mut self.bytes[self.end..]);
                again.map_err(|_| rustls::Error::EncryptError)?
            }
        };
        self.end += written;
        Ok(())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.kind.give_back(std::mem::take(&mut self.bytes));
        }
    }
}

/// Decrypted bytes for which the reader had no space.
#[derive(Debug, Default)]
pub(super) struct Plain {
    bytes: Vec<u8>,
    start: usize,
}

impl Plain {
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Reads as many bytes as fit; `false` if there are none.
    pub(super) fn read(&mut self, space: &mut ReadBuf<'_>) -> bool {
        if self.is_empty() {
            return false;
        }
        let rest = &self.bytes[self.start..];
        let fits = rest.len().min(space.remaining());
        space.put_slice(&rest[..fits]);
        self.start += fits;
        if self.is_empty() {
            *self = Self::default();
        }
        true
    }
}

/// Splits pieces into the content of records, at most [`WRITE_BYTES_MAX`] in total. Short pieces share a record.
pub(super) fn records(
    pieces: &[IoSlice<'_>],
    mut record: impl FnMut(&[u8]) -> Result<(), rustls::Error>,
) -> Result<(), rustls::Error> {
    if let [piece] = pieces {
        let piece = &piece[..piece.len().min(WRITE_BYTES_MAX)];
        return piece.chunks(RECORD_BYTES_MAX).try_for_each(record);
    }
    SPARE.with(|spare| {
        let together = &mut *spare.together.borrow_mut();
        together.clear();
        let mut room = WRITE_BYTES_MAX;
        for piece in pieces {
            let mut rest = &piece[..piece.len().min(room)];
            room -= rest.len();
            while !rest.is_empty() {
                if together.is_empty() && rest.len() >= RECORD_BYTES_MAX {
                    let (whole, after) = rest.split_at(RECORD_BYTES_MAX);
                    record(whole)?;
                    rest = after;
                    continue;
                }
                let fits = rest.len().min(RECORD_BYTES_MAX - together.len());
                let (fitting, after) = rest.split_at(fits);
                together.extend_from_slice(fitting);
                rest = after;
                if together.len() == RECORD_BYTES_MAX {
                    record(together)?;
                    together.clear();
                }
            }
        }
        if together.is_empty() {
            Ok(())
        } else {
            record(together)
        }
    })
}
