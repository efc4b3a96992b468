//! ConfigMap, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Checked ConfigMap. Only CA certificates and possible headers are kept.
#[derive(Clone, Debug, Default)]
pub struct ConfigMap {
    /// Value of the key `ca.crt`, PEM; `None` if there is none.
    pub ca_certificates: Option<Arc<str>>,
    /// Values whose keys are names of headers, and which have one line of at most [`ConfigMap::HEADER_BYTES_MAX`].
    pub headers: BTreeMap<Arc<str>, Arc<str>>,
}

impl ConfigMap {
    /// Key of the CA certificates.
    pub const CA_CERTIFICATES: &'static str = "ca.crt";
    /// Maximum length of a value that can be one of a header.
    pub const HEADER_BYTES_MAX: usize = 4096;
}
