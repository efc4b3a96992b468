//! Rules for connections, and where they lead.

use std::sync::Arc;

use super::virtual_host::Destination;
use crate::cluster::Split;
use crate::provenance::Provenance;
use crate::route::{OpaqueTable, RuleIdx};
use crate::upstream::Tunnel;

/// Rules for connections of which nothing is looked at but SNI and addresses.
#[derive(Debug, Default)]
pub struct OpaqueRoutes {
    /// Finds the rule that takes a connection.
    pub table: OpaqueTable,
    /// Where each rule of the table sends connections, by rule number.
    pub routes: Box<[OpaqueRoute]>,
    /// Of a server that goes by the names of clusters: what those are told who ask for another one. None for other
    /// servers.
    pub federated: Option<Federated>,
    /// Hash over everything that the routes follow from.
    pub fingerprint: u64,
}

/// Some of the hosts by which other clusters know services of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Federated {
    /// The hosts, sorted.
    pub hosts: Box<[Arc<str>]>,
    /// Whether they are those of one server; otherwise no server has a host for the name.
    pub of_server: bool,
}

impl OpaqueRoutes {
    /// Routes that are never used; they only list the hosts.
    pub fn nowhere(hosts: Vec<Arc<str>>) -> Self {
        Self {
            federated: Some(Federated {
                hosts: hosts.into_boxed_slice(),
                of_server: false,
            }),
            ..Self::default()
        }
    }

    /// Where a rule of the table sends connections.
    pub fn route(&self, rule: RuleIdx) -> &OpaqueRoute {
        &self.routes[rule.index()]
    }
}

/// Where a rule for connections sends them.
#[derive(Debug)]
pub struct OpaqueRoute {
    /// The rule that this was made from.
    pub provenance: Provenance,
    /// The destinations by weight; `None` when none of several has any.
    pub split: Option<Split<Destination>>,
    /// The tunnel that connections go through; none by default.
    pub tunnel: Option<Arc<Tunnel>>,
}
