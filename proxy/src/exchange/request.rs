//! What an exchange is lent: the worker's parts and settings, and the endpoint that was picked for it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use arc_swap::Cache;
use http::request::Parts;
use http::uri::Authority;
use hyper::Version;
use hyper::header::{HOST, HeaderValue};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::balance::EndpointIdx;
use crate::cluster::{Ask, Avoid, Cluster, Endpoint};
use crate::exchange::body::replay::ReplayBudget;
pub use crate::exchange::downstream::connection::{Connection, DownstreamProtocol};
use crate::exchange::downstream::origin::InternalAddresses;
use crate::exchange::forward::mirror::Mirroring;
use crate::pool::{PoolTarget, Pools};
use crate::registry::{Address, ClusterId};
use crate::snapshot::{Snapshot, SnapshotSlot};
use crate::telemetry::{AccessLogger, Counter, Gauge, RequestStats, Telemetry, WorkerId};
use crate::upstream::{Buffers, Client, Counts, Host, Protocol, Reach, TlsTarget, tls};

/// Default of [`ExchangeSettings::replay_body_bytes_max`]: Envoy's limit of a request's buffer.
pub const REPLAY_BODY_BYTES_MAX: usize = 1024 * 1024;

/// Default of [`ExchangeSettings::failover_body_bytes_max`].
pub const FAILOVER_BODY_BYTES_MAX: usize = 64 * 1024;

/// Most bytes of request bodies that all workers together keep for other attempts, by default.
pub const REPLAY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Settings of the request path that do not come from resources.
#[derive(Clone, Debug)]
pub struct ExchangeSettings {
    /// Value of the `server` response header; `None` leaves the upstream's. Default: `istio-envoy`, which
    /// dashboards and tests expect.
    pub server_name: Option<HeaderValue>,
    /// Whether an external client's `x-request-id` is kept instead of replaced. Default: no.
    pub keep_external_request_id: bool,
    /// Networks whose clients are internal. Default: none. Source: `--internal-addresses`.
    pub internal_addresses: InternalAddresses,
    /// How many proxies in front of this one are trusted: what they say of the client's address and scheme is
    /// believed. Default: 0. Source: `--trusted-hops`.
    pub trusted_hops: usize,
    /// Whether the client's host is told in `x-forwarded-host` when a rule changes it. Default: no. Source:
    /// `--forwarded-host`.
    pub forwarded_host: bool,
    /// Whether the host of a mirror's copy has `-shadow` behind its name, as older Istio had it. Default: no.
    pub shadow_host_suffix: bool,
    /// Most bytes of one request body that are kept for another try. Default: 1 MiB.
    pub replay_body_bytes_max: usize,
    /// Most bytes of request bodies that one worker keeps for other attempts. Default: its part of 64 MiB.
    pub replay_bytes_max: usize,
    /// Most bytes of one request body that may be sent again to the next tier of clusters; no more than are kept for
    /// another try. Default: 64 KiB. Source: `--failover-replay-bytes`.
    pub failover_body_bytes_max: usize,
    /// Name of this machine, for `%HOSTNAME%`.
    pub hostname: Arc<str>,
    /// The process's environment as it was at the start, for `%ENVIRONMENT(X)%`.
    pub environment: Arc<BTreeMap<String, String>>,
}

impl Default for ExchangeSettings {
    fn default() -> Self {
        Self {
            server_name: Some(HeaderValue::from_static("istio-envoy")),
            keep_external_request_id: false,
            internal_addresses: InternalAddresses::default(),
            trusted_hops: 0,
            forwarded_host: false,
            shadow_host_suffix: false,
            replay_body_bytes_max: REPLAY_BODY_BYTES_MAX,
            replay_bytes_max: REPLAY_BYTES_MAX,
            failover_body_bytes_max: FAILOVER_BODY_BYTES_MAX,
            hostname: Arc::from(""),
            environment: Arc::default(),
        }
    }
}

/// What a worker is made from; can be sent to its thread.
pub struct WorkerParts {
    /// Number of the worker.
    pub id: WorkerId,
    /// The published snapshot.
    pub snapshot: SnapshotSlot,
    /// Counters of all workers.
    pub telemetry: Arc<Telemetry>,
    /// Statistics of requests that no route took.
    pub unrouted: Arc<RequestStats>,
    /// Where log lines go.
    pub access_log: AccessLogger,
    /// Settings of the request path.
    pub settings: ExchangeSettings,
    /// Seed of the worker's random numbers.
    pub seed: u64,
}

/// What one worker thread owns and lends to every exchange on it.
pub struct Worker {
    /// Number of the worker.
    pub id: WorkerId,
    /// Upstream connections.
    pub pools: Pools,
    /// Counters of all workers.
    pub telemetry: Arc<Telemetry>,
    /// Statistics of requests that no route took.
    pub unrouted: Arc<RequestStats>,
    /// Where log lines go.
    pub access_log: AccessLogger,
    /// Settings of the request path.
    pub settings: ExchangeSettings,
    /// Memory for the heads of requests that may have to be sent again.
    pub buffers: Rc<Buffers>,
    /// Requests that faults hold back right now.
    pub delayed: Cell<u32>,
    /// Memory for bodies of requests that may have to be sent again.
    pub replay: Rc<ReplayBudget>,
    /// What copies of requests take.
    pub mirroring: Rc<Mirroring>,
    /// When an unknown name was logged last.
    pub(super) told_unknown: Cell<Option<tokio::time::Instant>>,
    snapshot: RefCell<Cached>,
    rng: RefCell<SmallRng>,
}

/// The worker's view of the published snapshot: an `Rc` of the `Arc`, so that a request's hold on it touches no
/// counter that other workers touch.
struct Cached {
    cache: Cache<SnapshotSlot, Arc<Snapshot>>,
    current: SnapshotRef,
}

/// A worker-local hold on a snapshot.
pub type SnapshotRef = Rc<Arc<Snapshot>>;

impl Worker {
    /// Takes the parts into use on the current thread.
    pub fn new(parts: WorkerParts) -> Self {
        let mut cache = Cache::new(parts.snapshot);
        let current = Rc::new(Arc::clone(cache.load()));
        let settings = &parts.settings;
        let replay = ReplayBudget::new(settings.replay_bytes_max, settings.replay_body_bytes_max);
        Self {
            id: parts.id,
            pools: Pools::new(Counts::new(Arc::clone(&parts.telemetry), parts.id)),
            telemetry: parts.telemetry,
            unrouted: parts.unrouted,
            access_log: parts.access_log,
            settings: parts.settings,
            buffers: Rc::default(),
            delayed: Cell::new(0),
            replay,
            mirroring: Rc::default(),
            told_unknown: Cell::default(),
            snapshot: RefCell::new(Cached { cache, current }),
            rng: RefCell::new(SmallRng::seed_from_u64(parts.seed)),
        }
    }

    /// The worker's random numbers.
    pub fn rng(&self) -> &RefCell<SmallRng> {
        &self.rng
    }

    /// The snapshot in effect. A request calls this once and keeps what it got.
    pub fn snapshot(&self) -> SnapshotRef {
        let cached = &mut *self.snapshot.borrow_mut();
        let latest = cached.cache.load();
        if !Arc::ptr_eq(latest, &cached.current) {
            cached.current = Rc::new(Arc::clone(latest));
        }
        Rc::clone(&cached.current)
    }

    /// Adds one to a counter.
    pub fn count(&self, counter: Counter) {
        self.telemetry.counters.increment(self.id, counter);
    }

    /// Raises a gauge by one.
    pub fn raise(&self, gauge: Gauge) {
        self.telemetry.counters.raise(self.id, gauge);
    }

    /// Lowers a gauge by one.
    pub fn lower(&self, gauge: Gauge) {
        self.telemetry.counters.lower(self.id, gauge);
    }

    /// Calls `draw` with the worker's random numbers.
    pub fn random<T>(&self, draw: impl FnOnce(&mut SmallRng) -> T) -> T {
        draw(&mut self.rng.borrow_mut())
    }
}

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
    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What the request brings to picks.
    pub(super) fn ask(&self) -> Ask {
        self.ask
    }

    /// An endpoint of one of its pools.
    pub(super) fn at_pool(&self, pool: ClusterId, endpoint: EndpointIdx) -> PickedEndpoint {
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
    pub(super) fn target(&self) -> &RequestTarget {
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
    pub(super) fn again(&self, worker: &Worker, avoid: &Avoid<'_>) -> Option<Self> {
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
    pub(super) fn is_kept(&self) -> bool {
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
