//! Cache of compiled expressions, so that equal expressions are compiled once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use regex::bytes::Regex;

use super::compiled::{Compiled, Extent};

/// Maximum number of expressions that each thread caches.
const REMEMBERED_MAX: usize = 4096;

/// Cached expressions with their sizes in bytes, by extent and source.
type Remembered = HashMap<(Extent, Box<str>), (Weak<Regex>, usize)>;

thread_local! {
    /// Cache of the expressions that are in use.
    static REMEMBERED: RefCell<Remembered> = RefCell::default();
}

/// Returns the cached expression for `source` and `extent` if it is still in use; otherwise calls `compile`.
///
/// # Errors
/// Returns the error of `compile`.
pub(super) fn shared(
    source: &str,
    extent: Extent,
    compile: impl FnOnce() -> Result<Compiled, String>,
) -> Result<Compiled, String> {
    REMEMBERED.with_borrow_mut(|remembered| {
        let key = (extent, source.into());
        let known = remembered.get(&key);
        if let Some((regex, bytes)) =
            known.and_then(|(regex, bytes)| Some((regex.upgrade()?, *bytes)))
        {
            return Ok(Compiled { regex, bytes });
        }
        let compiled = compile()?;
        if remembered.len() >= REMEMBERED_MAX {
            remembered.retain(|_, (regex, _)| regex.strong_count() > 0);
        }
        if remembered.len() < REMEMBERED_MAX {
            remembered.insert(key, (Arc::downgrade(&compiled.regex), compiled.bytes));
        }
        Ok(compiled)
    })
}
