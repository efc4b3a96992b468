//! Memory for heads of requests, used again and again by one worker.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Most buffers that wait to be used again.
const BUFFERS_MAX: usize = 256;

/// Largest buffer that is kept, in bytes.
const BUFFER_BYTES_MAX: usize = 4096;

/// Buffers of one worker that wait to be used again.
#[derive(Debug, Default)]
pub struct Buffers(RefCell<Vec<Vec<u8>>>);

impl Buffers {
    /// An empty buffer, which comes back when it is dropped.
    pub fn take(self: &Rc<Self>) -> Buffer {
        Buffer {
            bytes: self.0.borrow_mut().pop().unwrap_or_default(),
            home: Rc::clone(self),
        }
    }
}

/// A buffer on loan.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    home: Rc<Buffers>,
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut waiting = self.home.0.borrow_mut();
        if waiting.len() < BUFFERS_MAX && self.bytes.capacity() <= BUFFER_BYTES_MAX {
            self.bytes.clear();
            waiting.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_and_large_ones_are_freed() {
        let buffers = Rc::new(Buffers::default());
        let kept = || buffers.0.borrow().len();
        let mut two = (buffers.take(), buffers.take());
        two.0.extend_from_slice(b"abc");
        drop(two);
        assert_eq!(kept(), 2);
        let mut again = buffers.take();
        assert!(again.is_empty());
        again.resize(BUFFER_BYTES_MAX + 1, 0);
        drop(again);
        assert_eq!(kept(), 1);
    }
}
