//! Authorities of the mesh from several places.

use crate::identity::Identity;

/// Returns the authorities that the mesh configuration adds to those of the mesh.
pub(in crate::control) fn of_mesh_config(identity: &Identity) -> Vec<u8> {
    let config = &identity.mesh_config;
    let mut content = config.authorities.as_bytes().to_vec();
    if let Some(others) = &config.proxies.authorities {
        append(&mut content, others.as_bytes());
    }
    content
}

/// Appends PEM to PEM.
pub(in crate::control) fn append(content: &mut Vec<u8>, more: &[u8]) {
    content.push(b'\n');
    content.extend_from_slice(more);
}
