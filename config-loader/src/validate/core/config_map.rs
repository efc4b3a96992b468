//! ConfigMap: its CA certificates.

use crate::raw::core as raw;
use crate::resource::core::ConfigMap;
use crate::validate::{Check, api};

/// Checks a ConfigMap.
pub fn config_map(raw: &raw::ConfigMap, _check: &mut Check<'_>) -> ConfigMap {
    let data = raw.data.get();
    let certificates = data.and_then(|data| data.get(ConfigMap::CA_CERTIFICATES));
    ConfigMap {
        ca_certificates: certificates.map(api::text),
    }
}
