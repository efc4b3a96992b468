//! Fuzz target: arbitrary bytes as the mesh configuration, and as the settings of one proxy.
//!
//! Invariants: no panic; a rejected text has an error with its location; settings of a proxy replace those of the mesh and
//! leave the rest.

use std::sync::Arc;

use config_loader::resource::istio::{MeshConfig, ProxySettings};
use config_loader::{Parsed, SettingsFile, Severity};

/// Parses the text as both.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let own = parse::<ProxySettings>(&text).map(|(own, _)| own);
    let Ok((mesh, _)) = parse::<MeshConfig>(&text) else {
        return;
    };
    assert!(mesh.is_given);
    let own = own.unwrap_or_default();
    let merged = mesh.of_proxy(&own);
    assert_eq!(merged.flags, mesh.flags);
    for (field, values) in &own.flags {
        assert_eq!(merged.proxies.flags.get(field), Some(values));
    }
    assert_eq!(merged.of_proxy(&ProxySettings::default()), merged);
}

fn parse<T: SettingsFile>(text: &str) -> Parsed<T> {
    let parsed = T::parse(&Arc::from("mesh.yaml"), text);
    if let Err(found) = &parsed {
        assert!(found.iter().any(|one| one.severity == Severity::Error));
    }
    parsed
}
