//! Identity of a backend.

use std::fmt;

/// Identity of a backend, as its responses show it; empty parts are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Cluster.
    pub cluster: String,
    /// Service.
    pub service: String,
    /// Version.
    pub version: String,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.cluster, &self.service, &self.version];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        for (number, part) in parts.enumerate() {
            if number > 0 {
                f.write_str(" ")?;
            }
            f.write_str(part)?;
        }
        Ok(())
    }
}
