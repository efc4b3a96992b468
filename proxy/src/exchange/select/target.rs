//! The cluster of a request, and the endpoint that was picked.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use http::request::Parts;
use http::uri::Authority;
use hyper::Version;
use hyper::header::HOST;
use smallvec::SmallVec;

use crate::exchange::downstream::connection::Connection;
use crate::exchange::worker::{SnapshotRef, Worker};
use crate::pool::PoolTarget;
use crate::runtime::clock;
use crate::snapshot::Snapshot;
use crate::upstream::{Client, Host, Protocol, Reach, TlsTarget, tls};
use traffic::balance::EndpointIdx;
use traffic::cluster::{Cluster, Dialed, Endpoint, Outcome, PickInput, pod_of_host};
use traffic::registry::{Address, ClusterId, EndpointState};
use traffic::route::normalize_host;

/// The cluster of a request, together with its snapshot.
#[derive(Clone)]
pub struct Target {
    snapshot: SnapshotRef,
    cluster: ClusterId,
    ask: PickInput,
    /// The endpoint, if it is the address that the client dialed.
    dialed: Option<Rc<Endpoint>>,
    /// The pod of a headless service that the client chose.
    pod: Option<Pod>,
    /// Whether only the local cluster may serve the request.
    local_only: bool,
}

/// A client's choice of a pod of a headless service.
#[derive(Clone)]
enum Pod {
    /// By the address that the client dialed.
    At(SocketAddr),
    /// By the DNS name of the pod.
    Named(Rc<str>),
}

impl Target {
    /// Finds the cluster with this number; `None` if the snapshot has none.
    pub fn find(snapshot: &SnapshotRef, cluster: ClusterId) -> Option<Self> {
        snapshot.cluster(cluster)?;
        Some(Self {
            snapshot: Rc::clone(snapshot),
            cluster,
            ask: PickInput::default(),
            dialed: None,
            pod: None,
            local_only: false,
        })
    }

    /// The same target in the newest snapshot, from which each attempt picks; `None` if it has no such cluster.
    pub fn newest(&self, worker: &Worker) -> Option<Self> {
        let newest = worker.snapshot();
        newest.cluster(self.cluster)?;
        Some(Self {
            snapshot: newest,
            ..self.clone()
        })
    }

    /// Restricts the target to the local cluster, for retries and replays as well.
    #[must_use]
    pub fn local_only(self) -> Self {
        Self {
            local_only: true,
            ..self
        }
    }

    /// Whether only the local cluster may serve the request.
    pub fn is_local_only(&self) -> bool {
        self.local_only
    }

    /// The upstream cluster. With several Kubernetes clusters, the one that represents all of them.
    pub fn cluster(&self) -> &Arc<Cluster> {
        self.snapshot
            .cluster(self.cluster)
            .expect("found in this very snapshot")
    }

    /// Sets the inputs of picks.
    #[must_use]
    pub fn asking(self, ask: PickInput) -> Self {
        Self { ask, ..self }
    }

    /// Adds the address that the client of a connection dialed, which is the endpoint of some clusters.
    #[must_use]
    pub fn dialed_by(self, connection: &Connection, worker: &Worker) -> Self {
        let dialed = self.cluster().dialed.as_ref().zip(connection.dialed());
        let find = |(of_cluster, address): (&Dialed, _)| {
            let find = || worker.dialed.endpoint(of_cluster, address);
            connection.dialed_endpoint(&of_cluster.common, find)
        };
        Self {
            dialed: dialed.map(find),
            ..self
        }
    }

    /// Adds the address that a raw TCP client dialed, if it is not the proxy's own.
    #[must_use]
    pub fn dialed(self, dialed: Option<SocketAddr>, worker: &Worker) -> Self {
        let dialed = self.cluster().dialed.as_ref().zip(dialed);
        Self {
            dialed: dialed.map(|(of_cluster, at)| worker.dialed.endpoint(of_cluster, at)),
            ..self
        }
    }

    /// Adds the pod of a headless service that the client chose: the one at the address that it dialed, else the one in
    /// the authority.
    #[must_use]
    pub fn of_pod(self, dialed: Option<SocketAddr>, authority: Option<&str>) -> Self {
        if self.cluster().pods.is_none() {
            return self;
        }
        let at = dialed.map(Pod::At);
        let at = at.filter(|pod| self.find_pod(pod).is_some());
        let named = || {
            let host = normalize_host(authority?);
            let name = pod_of_host(&host, &self.cluster().host)?;
            Some(Pod::Named(name.into()))
        };
        Self {
            pod: at.or_else(named),
            ..self
        }
    }

    /// The pod that the client chose: `None` if it chose none, `Some(None)` if the pod does not exist.
    pub fn chosen(&self) -> Option<Option<PickedEndpoint>> {
        self.pod.as_ref().map(|pod| self.find_pod(pod))
    }

    fn find_pod(&self, pod: &Pod) -> Option<PickedEndpoint> {
        let cluster = self.cluster();
        let pools = cluster.federation.iter().flat_map(|one| one.pools());
        let pools = pools.filter_map(|pool| self.snapshot.cluster(pool.cluster));
        let own = cluster.federation.is_none().then_some(cluster);
        pools.chain(own).find_map(|pool| {
            let (pods, endpoints) = (pool.pods.as_ref()?, pool.endpoints());
            let endpoint = match pod {
                Pod::At(dialed) => pods.at(endpoints, *dialed),
                Pod::Named(name) => pods.named(endpoints, name),
            }?;
            Some(self.at_pool(pool.id(), endpoint))
        })
    }

    /// The endpoint of a cluster without endpoints of its own: the address that the client dialed. `None` if the client
    /// dialed the proxy.
    pub(super) fn at_dialed(&self) -> Option<PickedEndpoint> {
        Some(PickedEndpoint {
            dialed: Some(Rc::clone(self.dialed.as_ref()?)),
            ..self.at(EndpointIdx(0))
        })
    }

    /// The endpoint of the cluster with this number.
    pub(super) fn at(&self, endpoint: EndpointIdx) -> PickedEndpoint {
        PickedEndpoint {
            target: self.clone(),
            pool: self.cluster,
            endpoint,
            dialed: None,
        }
    }

    /// The snapshot of the cluster.
    pub(in crate::exchange) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Inputs of picks.
    pub(in crate::exchange) fn ask(&self) -> PickInput {
        self.ask
    }

    /// An endpoint of one of its pools.
    pub(super) fn at_pool(&self, pool: ClusterId, endpoint: EndpointIdx) -> PickedEndpoint {
        PickedEndpoint {
            target: self.clone(),
            pool,
            endpoint,
            dialed: None,
        }
    }
}

/// A picked endpoint, together with its snapshot.
#[derive(Clone)]
pub struct PickedEndpoint {
    target: Target,
    /// Cluster of the endpoint: the target's, or a pool of a federation.
    pool: ClusterId,
    endpoint: EndpointIdx,
    /// The endpoint itself if it is the address that the client dialed; such an endpoint has no number.
    dialed: Option<Rc<Endpoint>>,
}

/// Identity of a picked endpoint across snapshots.
#[derive(Clone, Debug)]
pub struct EndpointRef {
    /// Cluster of the endpoint.
    pub(super) cluster: ClusterId,
    /// Its number in the snapshot that it was picked from.
    endpoint: EndpointIdx,
    state: Arc<EndpointState>,
}

/// Endpoints of earlier attempts.
pub type Tried = SmallVec<[EndpointRef; 4]>;

/// Endpoints in `refs` that belong to this cluster.
pub(super) fn endpoints_of(cluster: &Cluster, refs: &[EndpointRef]) -> SmallVec<[EndpointIdx; 4]> {
    let of_cluster = refs.iter().filter(|of| of.cluster == cluster.id());
    let numbers = of_cluster.filter_map(|of| cluster.number_of(of.endpoint, &of.state));
    numbers.collect()
}

impl PickedEndpoint {
    /// The cluster of the endpoint.
    pub fn cluster(&self) -> &Arc<Cluster> {
        self.target
            .snapshot
            .cluster(self.pool)
            .expect("picked from this very snapshot")
    }

    /// DNS name of the endpoint, if the name itself is the endpoint.
    pub fn dns_name(&self) -> Option<&str> {
        match &self.endpoint().address {
            Address::Name { name, .. } => Some(name),
            Address::Ip(_) | Address::Unix(_) => None,
        }
    }

    /// The target that it was picked for.
    pub(in crate::exchange) fn target(&self) -> &Target {
        &self.target
    }

    /// The identity of the endpoint.
    pub fn endpoint_ref(&self) -> EndpointRef {
        EndpointRef {
            cluster: self.pool,
            endpoint: self.endpoint,
            state: Arc::clone(&self.endpoint().state),
        }
    }

    /// Number of the cluster of the endpoint.
    pub(super) fn pool_id(&self) -> ClusterId {
        self.pool
    }

    /// The same endpoint for a target of another snapshot; `None` if it was removed.
    pub(super) fn as_of(&self, target: &Target) -> Option<Self> {
        if self.is_dialed() {
            target.cluster().dialed.as_ref()?;
            return Some(Self {
                target: target.clone(),
                ..self.clone()
            });
        }
        let cluster = target.pool(self.pool)?;
        let endpoint = cluster.number_of(self.endpoint, &self.endpoint().state)?;
        Some(target.at_pool(self.pool, endpoint))
    }

    /// Number of the endpoint within its cluster.
    pub(super) fn index(&self) -> EndpointIdx {
        self.endpoint
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        match &self.dialed {
            None => self.cluster().endpoint(self.endpoint),
            Some(dialed) => dialed,
        }
    }

    /// Whether a request for `other` fits this endpoint unchanged: both are reached directly or by the same gateway.
    pub fn is_reached_as(&self, other: &Self) -> bool {
        self.endpoint().hop == other.endpoint().hop
    }

    /// Whether the endpoint is the address that the client dialed.
    pub(super) fn is_dialed(&self) -> bool {
        self.dialed.is_some()
    }

    /// Protocol of a request to the endpoint; `version` is that of the client's request, `upgrading` whether it is an
    /// upgrade.
    pub fn protocol(&self, version: Version, upgrading: bool) -> Protocol {
        let cluster = self.cluster();
        let client = match version {
            Version::HTTP_2 => Protocol::Http2,
            _ => Protocol::Http1,
        };
        let speaks = cluster.pool.speaks;
        speaks.choose(cluster.protocol, client, upgrading)
    }

    /// Connection properties for the pool, for a request of this client in this protocol.
    pub fn pool_target<'a>(&'a self, client: &'a Client, protocol: Protocol) -> PoolTarget<'a> {
        let cluster = self.cluster();
        let endpoint = self.endpoint();
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
            phases: None,
        }
    }

    /// Host of the request, if the TLS settings of the endpoint depend on it.
    pub fn host(&self, worker: &Worker, parts: &Parts) -> Option<Rc<Host>> {
        let tls = self.cluster().tls(self.endpoint())?;
        if !tls.wants_host() {
            return None;
        }
        let asked = || parts.headers.get(HOST)?.to_str().ok();
        let authority = parts.uri.authority().map(Authority::as_str);
        Some(worker.pools.host(tls::bare(authority.or_else(asked)?)))
    }

    /// Counts an attempt as active at the endpoint, until `leave` is called on the endpoint's state.
    pub fn enter(&self) {
        let cluster = self.cluster();
        if self.is_dialed() {
            return self.endpoint().state.enter();
        }
        cluster.enter(self.index(), || cluster.state.journal.at(clock::now()));
    }

    /// Reports the outcome to outlier detection.
    pub fn report(&self, outcome: Outcome) {
        let cluster = self.cluster();
        if self.is_dialed() {
            // no alternative endpoint exists
            return;
        }
        if let Some(verdict) = cluster.report(self.index(), outcome) {
            let turn = cluster.state.ejections.lock();
            cluster.decide(
                self.index(),
                verdict,
                &turn,
                cluster.state.journal.at(clock::now()),
            );
        }
    }
}
