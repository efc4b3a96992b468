//! Expressions that are compiled once, however often they are written.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use regex::bytes::Regex;

use super::compiled::{Compiled, Extent};

/// Number of expressions that each thread remembers.
const REMEMBERED_MAX: usize = 4096;

/// Expressions and their bytes, by extents and sources.
type Remembered = HashMap<(Extent, Box<str>), (Weak<Regex>, usize)>;

thread_local! {
    /// Compiled expressions that are in use, and their bytes, by their sources.
    static REMEMBERED: RefCell<Remembered> = RefCell::default();
}

/// Returns the expression of `source` for this extent: the one that is in use, else what `compile` makes of it.
///
/// # Errors
/// Those of `compile`.
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
