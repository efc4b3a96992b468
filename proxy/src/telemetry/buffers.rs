//! Two buffers between a worker and the thread that empties them.
//!
//! The thread locks at most one of them, and only to swap it, so that the worker always finds the other one free.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Number of times that a worker checks its two buffers in turn before it gives up.
///
/// One buffer is always free, but the other thread may move on to the other one between two checks, and back if the
/// worker loses the CPU meanwhile. Threads that share the buffers may also block each other.
const TRIES: usize = 8;

/// The two buffers of one worker.
#[derive(Debug, Default)]
pub(super) struct BufferPair<B> {
    /// Index of the buffer that the worker uses first; the other thread flips it before it takes the other buffer.
    active: AtomicUsize,
    buffers: [Mutex<B>; 2],
}

impl<B> BufferPair<B> {
    /// Changes a free buffer; `None` if none is found. Never waits.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut B) -> T) -> Option<T> {
        let active = self.active.load(Ordering::Acquire);
        let mut tries = (active..active + TRIES).map(|index| &self.buffers[index % 2]);
        let mut buffer = tries.find_map(try_lock)?;
        Some(change(&mut buffer))
    }

    /// Changes the buffer that the worker used so far, and lets it use the other one. Called by one thread only.
    pub(super) fn take<T>(&self, change: impl FnOnce(&mut B) -> T) -> T {
        let taken = self.active.load(Ordering::Relaxed);
        self.active.store(1 - taken, Ordering::Release);
        change(&mut lock(&self.buffers[taken]))
    }

    /// Both buffers, one after the other.
    pub(super) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, B>> {
        self.buffers.iter().map(lock)
    }
}

fn try_lock<B>(buffer: &Mutex<B>) -> Option<MutexGuard<'_, B>> {
    match buffer.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn lock<B>(buffer: &Mutex<B>) -> MutexGuard<'_, B> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}
