//! flomesh: what a controller of several clusters would write. From what clusters export follow the ServiceImports that
//! another one needs.
//!
//! Pure: `strait imports` writes the result to files, `strait control --imports-between` to API servers. Everything is
//! in an order that follows from the objects. Uses `catalog`, `resource`, `clusters` and `diagnostic`.

mod conflicts;
mod exported;
mod merging;
mod object;
mod types;

pub use conflicts::{Conflict, conflicts};
pub use merging::imports;
pub use object::object;
pub use types::{Import, Imported, Importing, Source};
