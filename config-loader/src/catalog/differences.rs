//! Differences between two versions of the objects of one kind.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::resource::{Object, Objects};

/// Object before and after a change; `None` if it did not or does not exist.
pub type Change<'a, T> = (Option<&'a Arc<Object<T>>>, Option<&'a Arc<Object<T>>>);

/// Returns the objects that were changed, added or removed, sorted by name. An unchanged object is the same `Arc` in
/// both versions. Objects that share their name with another object are not compared.
pub fn differences<'a, T>(
    before: &'a Objects<T>,
    now: &'a Objects<T>,
) -> impl Iterator<Item = Change<'a, T>> {
    let [old, new] = before.unshared(now);
    let (mut old, mut new) = (old.peekable(), new.peekable());
    std::iter::from_fn(move || {
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((gone, _)), Some((came, _))) => gone.cmp(came),
            };
            let gone = if order.is_le() { old.next() } else { None };
            let came = if order.is_ge() { new.next() } else { None };
            let change = (
                gone.map(|(_, object)| object),
                came.map(|(_, object)| object),
            );
            match change {
                (Some(gone), Some(came)) if Arc::ptr_eq(gone, came) => {}
                change => return Some(change),
            }
        }
    })
}
