//! Origin of a compiled part: resource, file and line.

use std::fmt;
use std::sync::Arc;

/// The resource, file and line that a part was compiled from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Provenance {
    /// Kind, namespace and name, as in `VirtualService/default/reviews`.
    pub object: Arc<str>,
    /// The name of the file when it was loaded.
    pub file: Arc<str>,
    /// One-based line in the file; 0 when the source has no lines.
    pub line: u32,
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file.is_empty() {
            // a flag of the proxy
            true => f.write_str(&self.object),
            false => write!(f, "{} ({}:{})", self.object, self.file, self.line),
        }
    }
}

/// The resources that determine a compiled part. Listed only on demand, since there may be very many.
#[derive(Clone)]
pub struct Sources(Arc<dyn Fn() -> Vec<Provenance> + Send + Sync>);

impl Sources {
    /// The sources that `list` returns.
    pub fn new(list: impl Fn() -> Vec<Provenance> + Send + Sync + 'static) -> Self {
        Self(Arc::new(list))
    }

    /// All sources.
    pub fn list(&self) -> Vec<Provenance> {
        (self.0)()
    }
}

impl Default for Sources {
    fn default() -> Self {
        Self::new(Vec::new)
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}
