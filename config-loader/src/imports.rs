//! flomesh imports: computes, from the ServiceExports of several clusters, the ServiceImports that one of them needs. A
//! multi-cluster controller would write the same objects.
//!
//! Pure functions: `strait imports` writes the result to files, `strait control --imports-between` to API servers. The
//! output order is deterministic. Uses `catalog`, `resource`, `clusters` and `diagnostic`.

mod conflicts;
mod exported;
mod merging;
mod object;
mod types;

pub use conflicts::{Conflict, conflicts};
pub use merging::imports;
pub use object::object;
pub use types::{Import, Imported, Importing, Source};
