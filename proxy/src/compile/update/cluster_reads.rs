//! Reads of clusters, kept from one compile to the next.

use config_loader::catalog::{Read, Reads};

use traffic::registry::ClusterId;

/// The read of certificates of clients.
pub(in crate::compile) const CERTIFICATES: Read<'_> = Read::Index("certificates", "", "");

/// The read of addresses of DNS names, which may be others at any time.
pub(in crate::compile) const ADDRESSES: Read<'_> = Read::Index("addresses of DNS names", "", "");

/// Reads of clusters, by their numbers.
#[derive(Debug, Default)]
pub(in crate::compile) struct ClusterReads(Vec<Option<Reads>>);

impl ClusterReads {
    /// Reads of a cluster that was made by its name.
    pub(in crate::compile) fn get(&self, id: ClusterId) -> Option<&Reads> {
        self.0.get(id.0 as usize)?.as_ref()
    }

    /// Puts in the reads of a cluster.
    pub(in crate::compile) fn insert(&mut self, id: ClusterId, reads: Reads) {
        let number = id.0 as usize;
        if number >= self.0.len() {
            self.0.resize(number + 1, None);
        }
        self.0[number] = Some(reads);
    }
}
