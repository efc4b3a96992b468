//! Metric labels of a sidecar's inbound traffic: the security of the connection, and the identities of both sides.

use std::sync::Arc;

use traffic::authz::Peer;

use crate::exchange::downstream::connection::{Connection, Handshake, PeerIdentity};
use crate::telemetry::{Reporter, RequestLabels, RequestStats, Security, StatsRegistry, Workload};

/// Security of the connection, as reported by the receiving side.
pub(super) fn security(connection: &Connection, reporter: Reporter) -> Security {
    match reporter {
        Reporter::Source => Security::Unknown,
        Reporter::Destination if connection.peer().has_certificate() => Security::MutualTls,
        Reporter::Destination => Security::None,
    }
}

/// Metrics with the labels of `base` and the identities of both sides; `None` without a client identity, or if the
/// sending side reports.
pub fn stats(
    handshake: Option<&Handshake>,
    base: &Arc<RequestStats>,
    registry: &StatsRegistry,
) -> Option<Arc<RequestStats>> {
    let labels = base.labels();
    let handshake = handshake.filter(|_| labels.reporter == Reporter::Destination)?;
    let find = || {
        let labels = with_principals(labels, handshake);
        labels.map(|labels| registry.request_stats(&labels))
    };
    handshake.peer_stats.find(base, find)
}

/// Adds the identities of both sides to labels, if the client has one.
fn with_principals(labels: &RequestLabels, handshake: &Handshake) -> Option<RequestLabels> {
    let principal = PeerIdentity::new(Some(handshake)).principal()?;
    let namespace = Peer::parse(principal).map(|peer| Arc::from(peer.namespace));
    let source = &*labels.source;
    let own = handshake.own.as_deref().and_then(|own| own.facts.uri());
    let destination = &*labels.destination;
    Some(RequestLabels {
        source: Arc::new(Workload {
            principal: principal.into(),
            namespace: namespace.unwrap_or_else(|| Arc::clone(&source.namespace)),
            ..source.clone()
        }),
        destination: Arc::new(Workload {
            principal: own.map_or_else(|| Arc::clone(&destination.principal), Arc::from),
            ..destination.clone()
        }),
        ..labels.clone()
    })
}
