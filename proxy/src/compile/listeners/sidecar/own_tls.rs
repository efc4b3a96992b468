//! TLS from clients outside of the mesh that ends at a sidecar, by `ingress[].tls`.

use std::sync::Arc;

use config_loader::resource::istio::{IngressListener, Protocol};

use crate::compile::certificates::{Scope, ingress_settings};
use crate::compile::listeners::chains::is_same;
use crate::snapshot::{Chain, Chains, Handling, HttpHosts, OpaqueRoutes, Service, Then};
use crate::tls::{Alpn, ServerTls};
use traffic::provenance::Provenance;

use super::made::Made;

/// TLS that ends at an ingress listener.
pub(super) struct OwnTls {
    id: Arc<str>,
    /// Protocol name: `HTTPS` or `TLS`.
    pub(super) protocol: &'static str,
    /// TLS settings of the server; `None` without a usable certificate, so that every handshake fails.
    tls: Option<Arc<ServerTls>>,
}

impl OwnTls {
    /// Returns the TLS of an `ingress` entry; `None` if mesh mTLS applies to the port, which a Sidecar does not change.
    pub(super) fn of(made: &Made<'_>, entry: &IngressListener) -> Option<Self> {
        let settings = ingress_settings(entry, Scope::Proxy(made.inputs.identity))?;
        if made.peers.on_port(entry.port.number, Alpn::None).is_some() {
            return None;
        }
        let sidecar = &made.sidecar?.id;
        let number = entry.port.number;
        Some(Self {
            id: format!("{}/{}/{number}", sidecar.namespace, sidecar.name).into(),
            protocol: match entry.port.protocol {
                Protocol::Https => "HTTPS",
                _ => "TLS",
            },
            tls: made.inputs.certificates.server(&settings),
        })
    }

    /// Returns the service of the listener: one server that accepts every SNI. That of the previous snapshot if it is
    /// the same.
    pub(super) fn service(
        self,
        http: Option<Arc<HttpHosts>>,
        opaque: Arc<OpaqueRoutes>,
        provenance: &[Provenance],
        before: Option<&Service>,
    ) -> Service {
        let chain = Chain {
            id: self.id,
            names: Box::new(["*".into()]),
            protocol: self.protocol,
            provenance: provenance.first().cloned().unwrap_or_else(nowhere),
            // the listener has no other server
            clients: None,
            handling: Handling::Terminate {
                tls: self.tls,
                then: http.map_or(Then::Opaque(opaque), Then::Http),
            },
        };
        match before {
            Some(Service::Tls(before))
                if before
                    .chains
                    .first()
                    .is_some_and(|one| is_same(one, &chain)) =>
            {
                Service::Tls(Arc::clone(before))
            }
            _ => Service::Tls(Arc::new(Chains::new(vec![chain]))),
        }
    }
}

fn nowhere() -> Provenance {
    Provenance {
        object: "".into(),
        file: "".into(),
        line: 0,
    }
}
