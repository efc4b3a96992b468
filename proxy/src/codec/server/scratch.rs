//! Read buffer that the raw TCP connections of a worker share.

use std::cell::{RefCell, RefMut};

/// Size of the buffer. Larger pieces leave the processor's cache, smaller ones cost more system calls.
const PIECE_BYTES: usize = 128 * 1024;

/// Read buffer that the connections of a worker use one at a time.
#[derive(Debug)]
pub(in crate::codec) struct Scratch(RefCell<Box<[u8]>>);

impl Scratch {
    /// Returns a buffer that is allocated at its first use.
    pub(in crate::codec) fn new() -> Self {
        Self(RefCell::new(Box::default()))
    }

    /// Returns the buffer.
    pub(in crate::codec) fn space(&self) -> RefMut<'_, [u8]> {
        let mut space = self.0.borrow_mut();
        if space.is_empty() {
            *space = vec![0; PIECE_BYTES].into_boxed_slice();
        }
        RefMut::map(space, |space| &mut **space)
    }
}
