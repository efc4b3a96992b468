//! ConfigMap, checked.

use std::sync::Arc;

/// Checked ConfigMap. Only CA certificates are kept.
#[derive(Clone, Debug, Default)]
pub struct ConfigMap {
    /// Value of the key `ca.crt`, PEM; `None` if there is none.
    pub ca_certificates: Option<Arc<str>>,
}

impl ConfigMap {
    /// Key of the CA certificates.
    pub const CA_CERTIFICATES: &'static str = "ca.crt";
}
