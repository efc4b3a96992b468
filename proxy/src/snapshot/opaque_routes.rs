//! Routes for raw TCP connections.

use std::sync::Arc;

use super::virtual_host::Destination;
use crate::upstream::Tunnel;
use traffic::cluster::Split;
use traffic::provenance::Provenance;
use traffic::route::{OpaqueTable, RuleIdx};

/// Rules for connections, by SNI and addresses only.
#[derive(Debug, Default)]
pub struct OpaqueRoutes {
    /// Finds the rule for a connection.
    pub table: OpaqueTable,
    /// Destinations of each rule, by rule number.
    pub routes: Box<[OpaqueRoute]>,
    /// Hosts to log for clients that ask for another one, at a server whose hosts are names of clusters; `None` for
    /// other servers.
    pub federated: Option<Federated>,
    /// Hash of all properties of the routes.
    pub fingerprint: u64,
}

/// Hosts by which other clusters address services of this cluster; a part of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Federated {
    /// The hosts, sorted.
    pub hosts: Box<[Arc<str>]>,
    /// Whether they are the hosts of one server; otherwise no server matched the name.
    pub of_server: bool,
}

impl OpaqueRoutes {
    /// Routes without rules, which only list the hosts.
    pub fn nowhere(hosts: Vec<Arc<str>>) -> Self {
        Self {
            federated: Some(Federated {
                hosts: hosts.into_boxed_slice(),
                of_server: false,
            }),
            ..Self::default()
        }
    }

    /// The destinations of a rule.
    pub fn route(&self, rule: RuleIdx) -> &OpaqueRoute {
        &self.routes[rule.index()]
    }
}

/// Destinations of a rule for connections.
#[derive(Debug)]
pub struct OpaqueRoute {
    /// The rule that the route was compiled from.
    pub provenance: Provenance,
    /// Weighted destinations; `None` if all of several weights are 0.
    pub split: Option<Split<Destination>>,
    /// Tunnel to send connections through; default: none.
    pub tunnel: Option<Arc<Tunnel>>,
}
