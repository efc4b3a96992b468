//! Reads of virtual hosts, kept from one compile to the next.

use std::collections::HashMap;
use std::sync::Arc;

use config_loader::catalog::{Readers, Reads};

use crate::compile::update::attached_routes::AttachedRoutes;

/// Reads of the virtual hosts of some servers.
#[derive(Debug, Default)]
pub(in crate::compile) struct HostReads {
    /// Hash of the servers, and reads of the list of their virtual hosts.
    pub list: Option<(u64, Reads)>,
    /// Reads of each virtual host.
    pub hosts: Readers<PartKey>,
}

/// Name of a virtual host, and the hash of its inputs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::compile) struct PartKey {
    pub name: Arc<str>,
    pub inputs: u64,
}

/// Reads of all virtual hosts, by their servers: those of the compile before, and those of this one.
#[derive(Debug, Default)]
pub(in crate::compile) struct AllHostReads {
    /// Routes that listeners of the Gateway API have.
    pub attached: Option<AttachedRoutes>,
    before: HashMap<String, HostReads>,
    now: HashMap<String, HostReads>,
}

impl AllHostReads {
    /// Takes the reads of the compile before.
    pub(in crate::compile) fn take(&mut self, servers: &str) -> HostReads {
        self.before.remove(servers).unwrap_or_default()
    }

    /// Puts in the reads of this compile.
    pub(in crate::compile) fn put(&mut self, servers: String, reads: HostReads) {
        self.now.insert(servers, reads);
    }

    /// Returns the reads for the next compile.
    pub(in crate::compile) fn finish(self) -> Self {
        Self {
            attached: self.attached,
            before: self.now,
            now: HashMap::new(),
        }
    }
}
