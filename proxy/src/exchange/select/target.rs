//! The cluster that a request is for, and the endpoint that was picked for it.

use std::rc::Rc;
use std::sync::Arc;

use http::request::Parts;
use http::uri::Authority;
use hyper::Version;
use hyper::header::HOST;

use crate::balance::EndpointIdx;
use crate::cluster::{Ask, Avoid, Cluster, Endpoint};
use crate::exchange::worker::{SnapshotRef, Worker};
use crate::pool::PoolTarget;
use crate::registry::{Address, ClusterId};
use crate::snapshot::Snapshot;
use crate::upstream::{Client, Host, Protocol, Reach, TlsTarget, tls};

/// The cluster that a request is for, held through the snapshot that names it.
#[derive(Clone)]
pub struct RequestTarget {
    snapshot: SnapshotRef,
    cluster: ClusterId,
    ask: Ask,
    /// Whether no other member may be asked.
    stays: bool,
}

impl RequestTarget {
    /// The cluster with this number; `None` when the snapshot has none.
    pub fn find(snapshot: &SnapshotRef, cluster: ClusterId) -> Option<Self> {
        snapshot.cluster(cluster)?;
        Some(Self {
            snapshot: Rc::clone(snapshot),
            cluster,
            ask: Ask::default(),
            stays: false,
        })
    }

    /// With no other member asked, now or later.
    #[must_use]
    pub fn staying(self) -> Self {
        Self {
            stays: true,
            ..self
        }
    }

    /// Whether no other member may be asked.
    pub fn stays(&self) -> bool {
        self.stays
    }

    /// The cluster. Where several members serve it, the one that represents them all.
    pub fn cluster(&self) -> &Arc<Cluster> {
        self.snapshot
            .cluster(self.cluster)
            .expect("found in this very snapshot")
    }

    /// With what the request brings to picks.
    #[must_use]
    pub fn asking(self, ask: Ask) -> Self {
        Self { ask, ..self }
    }

    /// One of its endpoints by number.
    pub fn at(&self, endpoint: EndpointIdx) -> PickedEndpoint {
        PickedEndpoint {
            target: self.clone(),
            pool: self.cluster,
            endpoint,
        }
    }

    /// Picks an endpoint; `None` when there is none that may be used.
    pub fn pick(&self, worker: &Worker) -> Option<PickedEndpoint> {
        let cluster = self.cluster();
        if let Some(federation) = &cluster.federation {
            return self.pick_member(federation, worker);
        }
        let endpoint = worker.random(|rng| cluster.pick(self.ask, rng))?;
        Some(self.at(endpoint))
    }

    /// The snapshot that names it.
    pub(in crate::exchange) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What the request brings to picks.
    pub(in crate::exchange) fn ask(&self) -> Ask {
        self.ask
    }

    /// An endpoint of one of its pools.
    pub(in crate::exchange) fn at_pool(
        &self,
        pool: ClusterId,
        endpoint: EndpointIdx,
    ) -> PickedEndpoint {
        PickedEndpoint {
            target: self.clone(),
            pool,
            endpoint,
        }
    }
}

/// The endpoint that a request goes to, held through the snapshot that it was picked from.
#[derive(Clone)]
pub struct PickedEndpoint {
    target: RequestTarget,
    /// The cluster that it belongs to: the destined one, or that of a member.
    pool: ClusterId,
    endpoint: EndpointIdx,
}

/// The identity of a picked endpoint within its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointRef {
    /// The cluster that it belongs to.
    pub cluster: ClusterId,
    /// Its number there.
    pub endpoint: EndpointIdx,
}

impl PickedEndpoint {
    /// The cluster that the endpoint belongs to.
    pub fn cluster(&self) -> &Arc<Cluster> {
        self.target
            .snapshot
            .cluster(self.pool)
            .expect("picked from this very snapshot")
    }

    /// The DNS name of an endpoint that is one by its name.
    pub fn dns_name(&self) -> Option<&str> {
        match &self.endpoint().address {
            Address::Name { name, .. } => Some(name),
            Address::Ip(_) | Address::Unix(_) => None,
        }
    }

    /// What the request is for.
    pub(in crate::exchange) fn target(&self) -> &RequestTarget {
        &self.target
    }

    /// Which endpoint it is.
    pub fn endpoint_ref(&self) -> EndpointRef {
        EndpointRef {
            cluster: self.pool,
            endpoint: self.endpoint,
        }
    }

    /// Number of the endpoint within its cluster.
    pub fn index(&self) -> EndpointIdx {
        self.endpoint
    }

    /// Picks an endpoint of the same cluster, this one perhaps, which avoids what it may.
    pub(in crate::exchange) fn again(&self, worker: &Worker, avoid: &Avoid<'_>) -> Option<Self> {
        let ask = Ask {
            calm: !self.is_last_resort(),
            ..self.target.ask
        };
        let endpoint = worker.random(|rng| self.cluster().pick_other(ask, avoid, rng))?;
        Some(Self {
            endpoint,
            ..self.clone()
        })
    }

    /// Whether the client stays with this endpoint where there is no reason to leave it.
    pub(in crate::exchange) fn is_kept(&self) -> bool {
        self.cluster().remembers().is_some() && self.endpoint().state.health.is_usable()
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        self.cluster().endpoint(self.endpoint)
    }

    /// What a request to it goes out in: `version` is what it came in, `upgrading` whether it asks for another
    /// protocol.
    pub fn protocol(&self, version: Version, upgrading: bool) -> Protocol {
        let cluster = self.cluster();
        let client = match version {
            Version::HTTP_2 => Protocol::Http2,
            _ => Protocol::Http1,
        };
        let speaks = cluster.pool.speaks;
        speaks.choose(cluster.protocol, client, upgrading)
    }

    /// What the pool needs to know of it, for a request of this client in this protocol.
    pub fn pool_target<'a>(&'a self, client: &'a Client, protocol: Protocol) -> PoolTarget<'a> {
        let cluster = self.cluster();
        let endpoint = cluster.endpoint(self.endpoint);
        PoolTarget {
            reach: Reach {
                address: &endpoint.address,
                alternates: endpoint.alternates(),
            },
            cluster: &cluster.state,
            state: &endpoint.state,
            protocol,
            settings: &cluster.pool,
            tls: cluster
                .tls(endpoint)
                .map(|client| TlsTarget { client, host: None }),
            client,
            connected: None,
        }
    }

    /// The host that a request asks for, if its TLS is to be for that.
    pub fn host(&self, worker: &Worker, parts: &Parts) -> Option<Rc<Host>> {
        let tls = self.cluster().tls(self.endpoint())?;
        if !tls.wants_host() {
            return None;
        }
        let asked = || parts.headers.get(HOST)?.to_str().ok();
        let authority = parts.uri.authority().map(Authority::as_str);
        Some(worker.pools.host(tls::bare(authority.or_else(asked)?)))
    }
}
