//! Times and certificates in the forms of this module.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::clock;

/// Returns the time in seconds since 1970.
pub(super) fn now() -> i64 {
    i64::try_from(clock::seconds_now()).unwrap_or(i64::MAX)
}

/// Converts seconds since 1970 to a time.
pub(super) fn time(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds.try_into().unwrap_or_default())
}

/// Reads one certificate in PEM.
pub(super) fn pem(text: &str) -> Result<CertificateDer<'static>, String> {
    CertificateDer::from_pem_slice(text.as_bytes()).map_err(|error| error.to_string())
}
