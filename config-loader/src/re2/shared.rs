//! Expressions that are compiled once, however often they are written.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use regex::bytes::Regex;

/// Number of expressions that each thread remembers.
const REMEMBERED_MAX: usize = 4096;

thread_local! {
    /// Compiled expressions that are in use, by their sources.
    static REMEMBERED: RefCell<HashMap<Box<str>, Weak<Regex>>> = RefCell::default();
}

/// Returns the expression of `source`: the one that is in use, else what `compile` makes of it.
///
/// # Errors
/// Those of `compile`.
pub(super) fn shared(
    source: &str,
    compile: impl FnOnce() -> Result<Regex, String>,
) -> Result<Arc<Regex>, String> {
    REMEMBERED.with_borrow_mut(|remembered| {
        if let Some(known) = remembered.get(source).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let compiled = Arc::new(compile()?);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.retain(|_, regex| regex.strong_count() > 0);
        }
        if remembered.len() < REMEMBERED_MAX {
            remembered.insert(source.into(), Arc::downgrade(&compiled));
        }
        Ok(compiled)
    })
}
