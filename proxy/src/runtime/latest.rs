//! Values that are replaced while the proxy runs: a slot that all threads share, and the view of one worker.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

/// Slot with the newest value.
pub type Slot<T> = Arc<ArcSwap<T>>;

/// Worker-local reference to a value.
pub type LatestRef<T> = Rc<Arc<T>>;

/// Returns a slot with its first value.
pub fn slot<T>(value: T) -> Slot<T> {
    Arc::new(ArcSwap::from_pointee(value))
}

/// View of a slot by one worker: an `Rc` of the `Arc`, so that holding it for a request touches no reference count that other
/// workers share.
pub struct Latest<T>(RefCell<Cached<T>>);

struct Cached<T> {
    cache: Cache<Slot<T>, Arc<T>>,
    current: LatestRef<T>,
}

impl<T> Latest<T> {
    /// Makes the view of a slot.
    pub fn of(slot: Slot<T>) -> Self {
        let mut cache = Cache::new(slot);
        let current = Rc::new(Arc::clone(cache.load()));
        Self(RefCell::new(Cached { cache, current }))
    }

    /// Reads the newest value, for no longer than the call. Costs one relaxed load while the value stays the same.
    pub fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        read(self.0.borrow_mut().cache.load())
    }

    /// Returns the newest value.
    pub fn get(&self) -> LatestRef<T> {
        let cached = &mut *self.0.borrow_mut();
        let latest = cached.cache.load();
        if !Arc::ptr_eq(latest, &cached.current) {
            cached.current = Rc::new(Arc::clone(latest));
        }
        Rc::clone(&cached.current)
    }
}

impl<T> std::fmt::Debug for Latest<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Latest").finish_non_exhaustive()
    }
}
