//! Memory that the connections of a worker share, each for as long as it is driven or has something to write.

use std::cell::{RefCell, RefMut};

use super::frame::{HEAD_BYTES, PAYLOAD_BYTES_MAX};

/// What is read at once: what is left of a frame, and as much again, and more.
const SCRATCH_BYTES: usize = 2 * (HEAD_BYTES + PAYLOAD_BYTES_MAX) + 32 * 1024;

/// Largest buffer that is kept for connections to come, and how many are.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
const BUFFERS_MAX: usize = 64;

/// Memory of one worker.
#[derive(Debug, Default)]
pub struct WorkerBuffers {
    input: RefCell<Vec<u8>>,
    buffers: RefCell<Vec<Vec<u8>>>,
}

impl WorkerBuffers {
    /// Where to read to.
    pub fn input(&self) -> RefMut<'_, Vec<u8>> {
        let mut input = self.input.borrow_mut();
        input.resize(SCRATCH_BYTES, 0);
        input
    }

    /// A buffer to write to.
    pub fn take_buffer(&self) -> Vec<u8> {
        self.buffers.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back a buffer of which nothing is needed any more.
    pub fn give_back(&self, buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffer.capacity() <= BUFFER_BYTES_MAX && buffers.len() < BUFFERS_MAX {
            buffers.push(buffer);
        }
    }
}
