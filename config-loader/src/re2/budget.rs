//! Bound of the memory that the expressions of one object take: a few KiB of text can compile to hundreds of MiB.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;

use regex::bytes::Regex;

use super::{Extent, compile};

/// Bytes that the expressions of one object may compile to, equal ones counted once.
pub const OBJECT_BYTES_MAX: usize = 32 << 20;

/// Expressions of one object that are compiled, within [`OBJECT_BYTES_MAX`].
#[derive(Debug, Default)]
pub struct Budget {
    used: Cell<usize>,
    seen: RefCell<HashSet<(Extent, Box<str>)>>,
}

impl Budget {
    /// Compiles an expression as [`compile`] does.
    ///
    /// # Errors
    /// Those of [`compile`], and that the budget is spent.
    pub fn compile(&self, source: &str, extent: Extent) -> Result<Arc<Regex>, String> {
        if self.is_spent() {
            return Err(spent());
        }
        let compiled = compile(source, extent)?;
        if self.seen.borrow_mut().insert((extent, source.into())) {
            self.used
                .set(self.used.get().saturating_add(compiled.bytes));
        }
        match self.is_spent() {
            true => Err(spent()),
            false => Ok(compiled.regex),
        }
    }

    /// Whether an expression was rejected because of the others.
    pub fn is_spent(&self) -> bool {
        self.used.get() > OBJECT_BYTES_MAX
    }

    /// Bytes of the compiled expressions, as they are estimated.
    pub fn used(&self) -> usize {
        self.used.get()
    }
}

fn spent() -> String {
    let mib = OBJECT_BYTES_MAX >> 20;
    format!("the regular expressions of this object compile to more than {mib} MiB together")
}
