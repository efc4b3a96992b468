//! ConfigMap: its CA certificates and possible headers.

use http::HeaderValue;

use crate::raw::{Map, core as raw};
use crate::resource::core::ConfigMap;
use crate::validate::{Check, api, scalar};

/// Checks a ConfigMap.
pub fn config_map(raw: &raw::ConfigMap, _check: &mut Check<'_>) -> ConfigMap {
    let data = raw.data.get();
    let certificates = data.and_then(|data| data.get(ConfigMap::CA_CERTIFICATES));
    let headers = data.into_iter().flat_map(Map::iter);
    let headers = headers.filter_map(|(name, _, value)| {
        let value = value.get().map(|value| value.trim())?;
        let is_header = scalar::is_header_name(name)
            && value.len() <= ConfigMap::HEADER_BYTES_MAX
            && HeaderValue::from_str(value).is_ok();
        is_header.then(|| (name.into(), value.into()))
    });
    ConfigMap {
        ca_certificates: certificates.map(api::text),
        headers: headers.collect(),
    }
}
