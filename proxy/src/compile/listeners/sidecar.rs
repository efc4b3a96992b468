//! Listeners of a sidecar: outbound for requests of the workload, and inbound for requests to it.
//!
//! One listener for each direction has the socket for captured connections. It hands each connection to a listener
//! without a socket, chosen by the address that the client dialed or, for the HTTP proxy, by the port that the request
//! names. Entries of a Sidecar with `captureMode: NONE` have their own socket.

mod http_proxy;
mod inbound;
mod made;
mod named;
mod outbound;
mod own_tls;
mod routed;
mod sorted;
mod tcp;
mod unknown;

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::catalog::sidecars::sidecar_of;

use crate::compile::Inputs;
use crate::compile::applies::workload;
use crate::compile::clusters::Clusters;
use crate::compile::peers::Peers;
use crate::compile::update::visible_routes::VisibleRoutes;
use crate::snapshot::{Direction, Intake, Listener, ListenerKey, Service, Snapshot};
use made::{Made, Wanted};

/// Compiles the listeners of a sidecar.
pub(super) fn compile(
    inputs: &Inputs<'_>,
    routes: &VisibleRoutes,
    clusters: &mut Clusters<'_>,
    previous: &Snapshot,
) -> BTreeMap<ListenerKey, Arc<Listener>> {
    let sidecar = sidecar_of(inputs.resources, workload(inputs.identity));
    let mut made = Made {
        inputs,
        peers: Peers::of(inputs.resources, inputs.identity, inputs.certificates),
        sidecar,
        previous,
        listeners: BTreeMap::new(),
    };
    capture_sockets(&mut made);
    http_proxy::add_socket(&mut made);
    outbound::compile(&mut made, routes, clusters);
    inbound::compile(&mut made, clusters);
    made.listeners
}

/// Adds the listeners that accept captured connections and hand them on by the address that the client dialed.
fn capture_sockets(made: &mut Made<'_>) {
    let sockets = made.inputs.identity.sockets;
    for (address, direction, intake) in [
        (
            sockets.outbound,
            Direction::Outbound,
            Intake::CapturedOutbound,
        ),
        (sockets.inbound, Direction::Inbound, Intake::CapturedInbound),
    ] {
        let Some(address) = address else { continue };
        let wanted = Wanted {
            direction,
            protocols: vec!["TCP"],
            provenance: Vec::new(),
            skipped: Vec::new(),
            service: Service::Captured(intake),
        };
        let mut key = ListenerKey::from(address);
        if sockets.is_transparent && direction == Direction::Inbound {
            key.intake = Intake::TransparentSocket;
        }
        made.add(key, wanted);
    }
}
