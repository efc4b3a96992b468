//! Where a compiled part came from: resource, file and line.

use std::fmt;
use std::sync::Arc;

/// The resource and the place in a file that a compiled part was made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Provenance {
    /// Kind, namespace and name, as in `VirtualService/default/reviews`.
    pub object: Arc<str>,
    /// The file as it was named when it was loaded.
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

/// The resources that had a say in something. They are written down when they are asked for, since there may be very many.
#[derive(Clone)]
pub struct Sources(Arc<dyn Fn() -> Vec<Provenance> + Send + Sync>);

impl Sources {
    /// The sources that `list` returns.
    pub fn new(list: impl Fn() -> Vec<Provenance> + Send + Sync + 'static) -> Self {
        Self(Arc::new(list))
    }

    /// All of them.
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
