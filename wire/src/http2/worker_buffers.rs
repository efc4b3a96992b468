//! Buffers that the connections of a worker share; each borrows one while it is driven or has output.

use std::cell::{RefCell, RefMut};

use super::frame::{HEAD_BYTES, PAYLOAD_BYTES_MAX};

/// Bytes per read: the rest of a frame, another frame, and more.
const SCRATCH_BYTES: usize = 2 * (HEAD_BYTES + PAYLOAD_BYTES_MAX) + 32 * 1024;

/// Maximum size of a spare buffer, and maximum number of them.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
const BUFFERS_MAX: usize = 64;

/// Buffers of one worker.
#[derive(Debug, Default)]
pub struct WorkerBuffers {
    input: RefCell<Vec<u8>>,
    buffers: RefCell<Vec<Vec<u8>>>,
}

impl WorkerBuffers {
    /// Returns the buffer to read into.
    pub fn input(&self) -> RefMut<'_, Vec<u8>> {
        let mut input = self.input.borrow_mut();
        input.resize(SCRATCH_BYTES, 0);
        input
    }

    /// Returns a buffer for output.
    pub fn take_buffer(&self) -> Vec<u8> {
        self.buffers.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back a buffer; its content is discarded.
    pub fn give_back(&self, buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffer.capacity() <= BUFFER_BYTES_MAX && buffers.len() < BUFFERS_MAX {
            buffers.push(buffer);
        }
    }
}
