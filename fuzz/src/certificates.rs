//! Fuzz target: arbitrary bytes as certificate files. They are rejected or used, and no reported property contains a
//! key.

use std::sync::Arc;

use proxy::tls::material::{AuthoritiesPem, IdentityPem};
use proxy::tls::{
    Alpn, Authorities, ClientCertRequirements, Identity, ServerSettings, ServerTls, Version,
};

/// Time at which the certificates of the corpus are valid.
const NOW: i64 = 1_800_000_000;

/// Reads all bytes as each kind of file, since every reader picks its own PEM blocks.
pub fn run(bytes: &[u8]) {
    let named = ("a.pem", bytes);
    let identity = Identity::read(IdentityPem {
        chain: named,
        key: named,
    });
    let authorities = Authorities::read(AuthoritiesPem {
        authorities: named,
        revoked: Some(named),
        is_lenient: false,
    });
    let authorities = authorities.or_else(|_| {
        Authorities::read(AuthoritiesPem {
            authorities: named,
            revoked: None,
            is_lenient: true,
        })
    });
    if let Ok(authorities) = &authorities {
        let told = format!("{:?}", authorities.untimely(NOW));
        assert!(!told.contains("PRIVATE KEY"), "{told}");
    }
    let identity = match identity {
        Ok(identity) => identity,
        Err(problem) => return assert!(!problem.text.contains("KEY-----\n")),
    };
    let told = format!("{identity:?} {:?}", identity.untimely(NOW));
    assert!(!told.contains("PRIVATE KEY"), "{told}");
    let settings = ServerSettings {
        version_max: Version::Tls13,
        alpn: Alpn::Http,
        clients: authorities
            .is_ok()
            .then(Box::<ClientCertRequirements>::default),
        ..ServerSettings::default()
    };
    let server = ServerTls::new(
        &settings,
        vec![Arc::new(identity)],
        authorities.ok().map(Arc::new),
    );
    assert!(server.is_ok(), "what was read can be served with");
}
