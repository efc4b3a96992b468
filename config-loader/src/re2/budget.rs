//! Memory limit for the regular expressions of one object. A few KiB of text can compile to hundreds of MiB.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;

use regex::bytes::Regex;

use super::{Extent, compile};

/// Maximum compiled size of the expressions of one object, in bytes. Equal expressions count once.
pub const OBJECT_BYTES_MAX: usize = 32 << 20;

/// Budget of compiled expressions of one object, limited to [`OBJECT_BYTES_MAX`].
#[derive(Debug, Default)]
pub struct Budget {
    used: Cell<usize>,
    seen: RefCell<HashSet<(Extent, Box<str>)>>,
}

impl Budget {
    /// Compiles an expression as [`compile`] does.
    ///
    /// # Errors
    /// Returns the error of [`compile`], or a message that the budget is exceeded.
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

    /// Whether the budget is exceeded, so that further expressions are rejected.
    pub fn is_spent(&self) -> bool {
        self.used.get() > OBJECT_BYTES_MAX
    }

    /// Returns the estimated size of the compiled expressions, in bytes.
    pub fn used(&self) -> usize {
        self.used.get()
    }
}

fn spent() -> String {
    let mib = OBJECT_BYTES_MAX >> 20;
    format!("the regular expressions of this object compile to more than {mib} MiB together")
}
