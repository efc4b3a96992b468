//! Clusters of a sidecar without a service: the workload itself, and passthrough to the dialed address.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use config_loader::resource::istio::{ConnectionPool, LocalEndpoint};

use crate::compile::clusters::{Clusters, Dials, Making, StandsFor};
use crate::compile::service::Service;
use crate::compile::service::port::{Carries, Port};
use crate::compile::service::workload::{Facts, Workload, WorkloadHost};
use crate::compile::services::collector::Draft;
use crate::pool::Source;
use crate::snapshot::Direction;
use crate::upstream::Protocol;
pub(in crate::compile) use traffic::cluster::BLACK_HOLE;
use traffic::cluster::Cluster;
use traffic::registry::{ClusterId, ClusterState};

/// Cluster of the workload's connections to unknown destinations.
pub(in crate::compile) const PASSTHROUGH: &str = "PassthroughCluster";

/// Cluster of connections to ports of the workload that no service has.
pub(in crate::compile) const INBOUND_PASSTHROUGH: &str = "InboundPassthroughCluster";

/// Port of the workload, as the target of inbound connections.
pub(in crate::compile) struct OwnPort<'a> {
    /// Service with this port, if there is one.
    pub service: Option<&'a Service>,
    /// Protocol of the connections.
    pub carries: Carries,
    /// Protocol in which the proxy sends requests to the workload.
    pub protocol: Protocol,
    /// Port that clients dial.
    pub number: u16,
    /// Endpoint of the workload; `None` for the address that the client dialed.
    pub endpoint: Option<&'a LocalEndpoint>,
    /// Connection limits; `None` for those of a DestinationRule.
    pub pool: Option<&'a ConnectionPool>,
}

/// Inputs of a cluster that no resource describes as a service.
struct Special<'a> {
    service: &'a Service,
    port: &'a Port,
    direction: Direction,
    /// Changes to the address that the client dialed, if connections go there.
    dials: Option<Dials>,
    workloads: &'a [Workload],
    /// Connection limits; `None` for those of a DestinationRule.
    pool: Option<&'a ConnectionPool>,
}

impl Clusters<'_> {
    /// Returns the cluster for all or no connections: [`PASSTHROUGH`], [`BLACK_HOLE`] or [`INBOUND_PASSTHROUGH`].
    pub(in crate::compile) fn special(&mut self, name: &'static str) -> (Arc<str>, ClusterId) {
        let direction = match name {
            INBOUND_PASSTHROUGH => Direction::Inbound,
            _ => Direction::Outbound,
        };
        let mut service = Draft::new(name, name, "").finish();
        service.host = name.into();
        let dials = (name != BLACK_HOLE).then(Dials::default);
        let port = port(0, Protocol::Http1, Carries::Detect);
        let special = Special {
            service: &service,
            port: &port,
            direction,
            dials,
            workloads: &[],
            pool: None,
        };
        self.add(name, special)
    }

    /// Returns the cluster of a port of the workload, `inbound|PORT||`.
    pub(in crate::compile) fn own_port(&mut self, own: &OwnPort<'_>) -> (Arc<str>, ClusterId) {
        let name = format!("inbound|{}||", own.number);
        let unknown = || Draft::new(&name, "", &self.identity.namespace).finish();
        let mut service = own.service.cloned().unwrap_or_else(unknown);
        let mut hasher = DefaultHasher::new();
        (service.fingerprint, own.number).hash(&mut hasher);
        format!("{:?} {:?} {:?}", own.endpoint, own.pool, own.protocol).hash(&mut hasher);
        service.fingerprint = hasher.finish();
        let port = port(own.number, own.protocol, own.carries);
        let (dials, workloads) = match own.endpoint {
            None => (Some(Dials::default()), Vec::new()),
            Some(LocalEndpoint::Workload(port)) => {
                let dials = Dials { port: Some(*port) };
                (Some(dials), Vec::new())
            }
            Some(LocalEndpoint::Loopback(ip, port)) => (None, vec![at(*ip, *port)]),
            Some(LocalEndpoint::Unix(path)) => {
                let path = Arc::from(Path::new(&**path));
                (None, vec![Workload::at(WorkloadHost::Unix(path))])
            }
        };
        let special = Special {
            service: &service,
            port: &port,
            direction: Direction::Inbound,
            dials,
            workloads: &workloads,
            pool: own.pool,
        };
        self.add(&name, special)
    }

    fn add(&mut self, name: &str, special: Special<'_>) -> (Arc<str>, ClusterId) {
        let state = self.registry.cluster(name);
        let (name, id) = (Arc::clone(&state.name), state.id);
        if self.built.has(id) {
            return (name, id);
        }
        let tape = self.tape;
        let (cluster, _) = tape.part(|| self.make_special(&name, state, special));
        self.built.insert(id, Some(cluster));
        (name, id)
    }

    fn make_special(
        &mut self,
        name: &Arc<str>,
        state: Arc<ClusterState>,
        special: Special<'_>,
    ) -> Arc<Cluster> {
        let Special {
            service,
            port,
            direction,
            dials,
            workloads,
            pool,
        } = special;
        let mut policy = self.policies.own(&service.host, service, port.number, pool);
        // so that connections to the workload are not captured again
        policy.pool.source = (direction == Direction::Inbound).then_some(Source::Proxy);
        let making = Making {
            service,
            port,
            policy: &policy,
            base: name,
            is_passed_on: true,
            dials,
            direction,
        };
        let workloads: Vec<&Workload> = workloads.iter().collect();
        self.cause = None;
        self.make(&making, state, &workloads, StandsFor::default())
    }
}

/// Returns a workload at this address that receives the traffic of every port on `port`.
fn at(ip: IpAddr, port: u16) -> Workload {
    let ports = BTreeMap::from([(String::new(), port)]);
    let facts = Facts {
        ports,
        ..Facts::default()
    };
    Workload::new(WorkloadHost::Ip(ip), facts)
}

fn port(number: u16, protocol: Protocol, carries: Carries) -> Port {
    Port {
        protocol,
        carries,
        ..Port::undeclared(number)
    }
}
