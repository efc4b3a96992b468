//! Who a backend says that it is.

use std::fmt;

/// Who a backend says that it is; what is empty is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Its cluster.
    pub cluster: String,
    /// Its service.
    pub service: String,
    /// Its version.
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
