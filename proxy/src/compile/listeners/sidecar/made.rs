//! Listeners of a sidecar that the current compile has built so far.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::istio::Sidecar;

use crate::compile::Inputs;
use crate::compile::peers::Peers;
use crate::compile::provenance::provenance_of;
use crate::snapshot::{
    Direction, Intake, Listener, ListenerKey, ProxyHeader, Service, Skipped, Snapshot,
};
use traffic::provenance::Provenance;

/// Listeners that were built so far, and their inputs.
pub(super) struct Made<'a> {
    pub(super) inputs: &'a Inputs<'a>,
    /// Requirements of the workload for its clients.
    pub(super) peers: Peers<'a>,
    /// Sidecar that applies to the workload.
    pub(super) sidecar: Option<&'a Arc<Object<Sidecar>>>,
    pub(super) previous: &'a Snapshot,
    pub(super) listeners: BTreeMap<ListenerKey, Arc<Listener>>,
}

/// Listener without its address.
pub(super) struct Wanted {
    pub(super) direction: Direction,
    pub(super) protocols: Vec<&'static str>,
    pub(super) provenance: Vec<Provenance>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) service: Service,
}

impl<'a> Made<'a> {
    /// Returns the handling of connections by the listener of this key in the previous snapshot.
    pub(super) fn before(&self, key: &ListenerKey) -> Option<&'a Service> {
        let before = self.previous.listeners.get(key)?;
        Some(&before.service)
    }

    /// Returns the location of a line of the Sidecar.
    pub(super) fn at(&self, line: u32) -> Vec<Provenance> {
        let sidecar = self.sidecar.iter();
        sidecar
            .map(|sidecar| provenance_of(sidecar.as_ref(), line))
            .collect()
    }

    /// Whether a listener of this key exists already.
    pub(super) fn has(&self, key: &ListenerKey) -> bool {
        self.listeners.contains_key(key)
    }

    /// Adds a listener; the one of the previous snapshot if it has not changed.
    pub(super) fn add(&mut self, key: ListenerKey, wanted: Wanted) {
        let captures = matches!(wanted.service, Service::Captured(_));
        let proxy_protocol = match captures && self.inputs.identity.sockets.proxy_header {
            true => ProxyHeader::Require,
            false => ProxyHeader::Off,
        };
        let Wanted {
            direction,
            protocols,
            provenance,
            skipped,
            service,
        } = wanted;
        let before = self.previous.listeners.get(&key).filter(|before| {
            before.direction == direction
                && before.protocols == protocols
                && before.provenance == provenance
                && before.skipped == skipped
                && before.proxy_protocol == proxy_protocol
                && before.service.is_same(&service)
        });
        let listener = match before {
            Some(before) => Arc::clone(before),
            None => Arc::new(Listener {
                key: Arc::new(key.clone()),
                direction,
                provenance,
                protocols,
                proxy_protocol,
                skipped,
                policies: None,
                service,
            }),
        };
        self.listeners.insert(key, listener);
    }
}

/// Unspecified address, which matches every destination.
pub(super) const ALL: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Returns the key of the listener for captured connections to a port; 0 for all other ports.
pub(super) fn captured_port(intake: Intake, port: u16) -> ListenerKey {
    ListenerKey::for_captured(intake, SocketAddr::new(ALL, port))
}
