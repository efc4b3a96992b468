//! Output queue: small pieces in one buffer, large ones by reference between them.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Minimum size of a piece that is queued by reference.
const BY_REFERENCE: usize = 2048;

/// Written bytes kept in the buffer; more are kept only while fewer than the unwritten bytes.
const WRITTEN_BYTES_MAX: usize = 4096;

/// Maximum slices of one write.
pub const SLICES: usize = 16;

/// Queue of bytes to write.
#[derive(Debug, Default)]
pub struct Output {
    small: Vec<u8>,
    /// Bytes of `small` that were written.
    written: usize,
    /// Large pieces, each with the length of `small` before it.
    large: VecDeque<(usize, Bytes)>,
    large_bytes: usize,
    /// Bytes written so far.
    gone: u64,
}

impl Output {
    /// Bytes written so far.
    pub fn sent(&self) -> u64 {
        self.gone
    }

    /// Bytes added so far.
    pub fn end(&self) -> u64 {
        self.gone + self.len() as u64
    }

    /// Bytes that wait to be written.
    pub fn len(&self) -> usize {
        self.small.len() - self.written + self.large_bytes
    }

    /// Whether no bytes wait.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the buffer, to append to it.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.small
    }

    /// Appends bytes.
    pub fn push(&mut self, bytes: Bytes) {
        if bytes.len() < BY_REFERENCE {
            self.small.extend_from_slice(&bytes);
        } else {
            self.large_bytes += bytes.len();
            self.large.push_back((self.small.len(), bytes));
        }
    }

    /// Fills slices with the first bytes to write; returns the number of slices.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        let mut count = 0;
        let mut at = self.written;
        let mut add = |bytes: &'a [u8]| {
            if !bytes.is_empty() && count < SLICES {
                slices[count] = IoSlice::new(bytes);
                count += 1;
            }
        };
        for (before, bytes) in self.large.iter().take(SLICES) {
            add(&self.small[at..*before]);
            add(bytes);
            at = *before;
        }
        if self.large.len() <= SLICES {
            add(&self.small[at..]);
        }
        count
    }

    /// Capacity of the buffer.
    #[cfg(test)]
    fn buffered(&self) -> usize {
        self.small.capacity()
    }

    /// Removes written bytes.
    pub fn advance(&mut self, mut bytes: usize) {
        let waiting = self.len();
        while bytes > 0 {
            let next = self.large.front().map_or(self.small.len(), |one| one.0);
            let small = bytes.min(next - self.written);
            self.written += small;
            bytes -= small;
            if self.written < next || bytes == 0 {
                break;
            }
            let Some((_, large)) = self.large.front_mut() else {
                break;
            };
            let taken = bytes.min(large.len());
            large.advance(taken);
            self.large_bytes -= taken;
            bytes -= taken;
            if large.is_empty() {
                self.large.pop_front();
            }
        }
        self.gone += (waiting - self.len()) as u64;
        if self.is_empty() {
            self.small.clear();
            self.written = 0;
        } else if self.written >= WRITTEN_BYTES_MAX && self.written * 2 >= self.small.len() {
            self.compact();
        }
    }

    /// Removes the written bytes from the buffer, which would grow otherwise if the peer never reads everything. Moves
    /// fewer bytes than it removes.
    fn compact(&mut self) {
        self.small.drain(..self.written);
        for (before, _) in &mut self.large {
            *before -= self.written;
        }
        self.written = 0;
    }

    /// Takes the buffer if no bytes wait.
    pub fn take_buffer(&mut self) -> Option<Vec<u8>> {
        (self.is_empty() && self.small.capacity() > 0).then(|| {
            self.written = 0;
            std::mem::take(&mut self.small)
        })
    }

    /// Obtains an empty buffer, if there is none.
    pub fn lend_buffer(&mut self, lend: impl FnOnce() -> Vec<u8>) {
        if self.small.capacity() == 0 {
            self.small = lend();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(output: &mut Output, step: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = output.slices(&mut slices);
            assert!(count > 0);
            let front: Vec<u8> = slices[..count].iter().flat_map(|s| s.to_vec()).collect();
            let taken = step.min(front.len());
            bytes.extend_from_slice(&front[..taken]);
            output.advance(taken);
        }
        bytes
    }

    #[test]
    fn output_keeps_order_with_any_read_sizes() {
        for step in [1, 7, 1000, 5000, usize::MAX] {
            let mut output = Output::default();
            let mut expected = Vec::new();
            for number in 0..40_usize {
                let len = [3, 0, BY_REFERENCE, BY_REFERENCE + 77][number % 4];
                let piece = vec![number as u8; len];
                output.buffer().extend_from_slice(b"head");
                expected.extend_from_slice(b"head");
                output.push(piece.clone().into());
                expected.extend(piece);
                assert_eq!(output.len(), expected.len());
            }
            assert_eq!(drain(&mut output, step), expected);
            assert!(output.take_buffer().is_some());
            output.buffer().extend_from_slice(b"again");
            assert!(output.take_buffer().is_none());
            assert_eq!(drain(&mut output, step), b"again");
        }
    }

    #[test]
    fn buffer_stays_bounded_under_constant_load() {
        let mut output = Output::default();
        let (mut next, mut read) = (0_u8, 0_u8);
        for round in 0..20_000_usize {
            for _ in 0..50 {
                output.buffer().push(next);
                next = next.wrapping_add(1);
            }
            if round % 100 == 0 {
                let piece = (0..BY_REFERENCE).map(|by| next.wrapping_add(by as u8));
                output.push(piece.collect());
            }
            // the peer always leaves a few bytes unread
            while output.len() > 7 {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let count = output.slices(&mut slices);
                let front: Vec<u8> = slices[..count].iter().flat_map(|s| s.to_vec()).collect();
                let taken = front.len().min(output.len() - 7).min(40);
                for byte in &front[..taken] {
                    assert_eq!(*byte, read);
                    read = read.wrapping_add(1);
                }
                output.advance(taken);
            }
        }
        assert!(output.buffered() < 64 * 1024, "{}", output.buffered());
    }
}
