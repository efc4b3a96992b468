//! Resources that clusters were built from, kept from one compile to the next.

use config_loader::catalog::{Read, Reads};

use traffic::registry::ClusterId;

/// Recorded read of client certificates.
pub(in crate::compile) const CERTIFICATES: Read<'_> = Read::Index("certificates", "", "");

/// Recorded read of the addresses of DNS names, which may change at any time.
pub(in crate::compile) const ADDRESSES: Read<'_> = Read::Index("addresses of DNS names", "", "");

/// Reads of clusters, indexed by cluster number.
#[derive(Debug, Default)]
pub(in crate::compile) struct ClusterReads(Vec<Option<Reads>>);

impl ClusterReads {
    /// Returns the reads of a cluster that was built by its name.
    pub(in crate::compile) fn get(&self, id: ClusterId) -> Option<&Reads> {
        self.0.get(id.0 as usize)?.as_ref()
    }

    /// Stores the reads of a cluster.
    pub(in crate::compile) fn insert(&mut self, id: ClusterId, reads: Reads) {
        let number = id.0 as usize;
        if number >= self.0.len() {
            self.0.resize(number + 1, None);
        }
        self.0[number] = Some(reads);
    }
}
