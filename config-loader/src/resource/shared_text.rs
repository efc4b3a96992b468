//! Cache of texts that many objects have in common: namespaces, nodes, labels of a Deployment's pods.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Number of texts that each thread caches.
const REMEMBERED_MAX: usize = 1024;

thread_local! {
    static REMEMBERED: RefCell<(RandomState, Vec<Arc<str>>)> =
        RefCell::new((RandomState::new(), vec![Arc::from(""); REMEMBERED_MAX]));
}

/// Returns the text, shared with an equal cached one. A text leaves the cache when another one takes its slot.
pub(crate) fn shared_text(text: &str) -> Arc<str> {
    REMEMBERED.with_borrow_mut(|(hasher, remembered)| {
        let at = (hasher.hash_one(text) % REMEMBERED_MAX as u64) as usize;
        let known = &mut remembered[at];
        if **known != *text {
            *known = text.into();
        }
        Arc::clone(known)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_shared_however_many_others_there_are() {
        let first = shared_text("a");
        assert!(Arc::ptr_eq(&first, &shared_text("a")));
        for number in 0..10 * REMEMBERED_MAX {
            assert_eq!(*shared_text(&number.to_string()), *number.to_string());
        }
        let next = shared_text("a");
        assert!(*next == *first && Arc::ptr_eq(&next, &shared_text("a")));
    }
}
