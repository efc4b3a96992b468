//! Buffers for message heads, reused by one worker.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use http::HeaderMap;

/// Maximum free buffers.
const BUFFERS_MAX: usize = 256;

/// Largest free buffer, in bytes.
const BUFFER_BYTES_MAX: usize = 4096;

/// Maximum free header maps, and maximum capacity of one.
const MAPS_MAX: usize = 256;
const MAP_FIELDS_MAX: usize = 48;

/// Free buffers and header maps of one worker.
#[derive(Debug, Default)]
pub struct Buffers {
    bytes: RefCell<Vec<Vec<u8>>>,
    maps: RefCell<Vec<HeaderMap>>,
}

impl Buffers {
    /// Returns an empty buffer; dropping it returns it to the free buffers.
    pub fn take(self: &Rc<Self>) -> Buffer {
        Buffer {
            bytes: self.bytes.borrow_mut().pop().unwrap_or_default(),
            home: Rc::clone(self),
        }
    }

    /// Clears a header map and keeps it for reuse.
    pub fn keep_map(&self, mut map: HeaderMap) {
        map.clear();
        let mut maps = self.maps.borrow_mut();
        if maps.len() < MAPS_MAX && map.capacity() <= MAP_FIELDS_MAX {
            maps.push(map);
        }
    }

    /// Returns an empty header map.
    pub fn take_map(&self) -> HeaderMap {
        self.maps.borrow_mut().pop().unwrap_or_default()
    }
}

/// A buffer in use.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    home: Rc<Buffers>,
}

impl Buffer {
    /// Buffers that this buffer returns to.
    pub fn home(&self) -> &Buffers {
        &self.home
    }
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
        let mut waiting = self.home.bytes.borrow_mut();
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
        let kept = || buffers.bytes.borrow().len();
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

    #[test]
    fn maps_come_back_empty_and_large_ones_are_freed() {
        let buffers = Buffers::default();
        let with = |count: u16| -> HeaderMap {
            let fields = (0..count).map(|number| {
                let name = http::HeaderName::try_from(format!("x-{number}"));
                (name.expect("a name"), http::HeaderValue::from(number))
            });
            fields.collect()
        };
        buffers.keep_map(with(3));
        let again = buffers.take_map();
        assert!(again.is_empty() && again.capacity() >= 3);
        buffers.keep_map(with(1_000));
        assert_eq!(buffers.take_map().capacity(), 0);
        for _ in 0..=MAPS_MAX {
            buffers.keep_map(with(1));
        }
        assert_eq!(buffers.maps.borrow().len(), MAPS_MAX);
    }
}
