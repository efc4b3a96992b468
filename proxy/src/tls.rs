//! TLS: certificates and keys to what rustls serves with.
//!
//! Row 0: uses `error` and `runtime` only. Secrets never reach a log or a dump.

use std::fmt;
use std::sync::Arc;

/// What one TLS server handshakes with.
#[derive(Clone)]
pub struct ServerTls {
    /// For rustls; the same as long as nothing that it was made from changes, so that sessions can be resumed.
    pub config: Arc<rustls::ServerConfig>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}
