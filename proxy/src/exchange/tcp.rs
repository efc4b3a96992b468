//! Path of one raw TCP connection: rule, destination, endpoint, attempts, and a single report of its end.
//!
//! The same steps as for a request, without a head. The result is a connected stream with a [`Record`], which the codec
//! updates while bytes move. A connection may last for days, so that a record holds no snapshot.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::uri::Authority;
use hyper::header::HeaderValue;
use rand::RngExt;
use tokio::time::Instant;

use crate::exchange::admit::admit;
use crate::exchange::authorize;
use crate::exchange::downstream::connection::{Handshake, PeerIdentity};
use crate::exchange::ext_authz;
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::recheck::{self, TcpClient};
use crate::exchange::record::log::host;
use crate::exchange::record::log_choice::LogChoice;
use crate::exchange::record::{Denial, health, peer};
use crate::exchange::select::proxied::{NamedHost, is_loop};
use crate::exchange::select::target::{PickedEndpoint, Target, Tried};
use crate::exchange::select::watch::{EndpointWatch, MOVES_MAX, Moves};
use crate::exchange::worker::{SnapshotRef, Worker};
use crate::snapshot::{Destination, Federated, ListenerKey, OpaqueRoutes, Service};
use crate::telemetry::{Counter, Entry, HttpVersion, RequestStats, ResponseFlags};
use crate::upstream::{Client, ConnectionInfo, TcpConnection, Tunnel, dial};
use traffic::balance::{HashKey, of_address};
use traffic::cluster::{BLACK_HOLE, Outcome, PickInput};
use traffic::error::{Error, Kind};
use traffic::registry::{Address, ConnectionPermit, EndpointState};
use traffic::route::OpaqueHead;

/// A downstream TCP connection to proxy.
#[derive(Clone, Debug)]
pub struct DownstreamTcp {
    /// Listener that accepted the connection.
    pub listener: Arc<ListenerKey>,
    /// Address of the peer.
    pub remote: SocketAddr,
    /// Address of the proxy, or the address that the client dialed.
    pub local: SocketAddr,
    /// Address that the client dialed; `None` if it is the proxy's own.
    pub dialed: Option<SocketAddr>,
    /// SNI of a TLS client.
    pub server_name: Option<Arc<str>>,
    /// TLS handshake results, if TLS is terminated.
    pub tls: Option<Rc<Handshake>>,
    /// Whether it is not known yet if TLS is terminated: the connection is counted once that is known.
    pub is_undecided: bool,
    /// Rules of the server for the connection; `None` if there is no server for it.
    pub routes: Option<Arc<OpaqueRoutes>>,
    /// The CONNECT request, for a client of the HTTP proxy.
    pub connect: Option<Box<ConnectRequest>>,
    /// Random number of the choice by weight, if that was made before the handshake.
    pub draw: Option<u64>,
}

/// CONNECT request of a client that uses the sidecar as its HTTP proxy.
#[derive(Clone, Debug)]
pub struct ConnectRequest {
    /// Requested host, or the reply if there is none.
    pub named: Result<NamedHost, LocalReply>,
    /// Authority as sent by the client.
    pub authority: Option<Authority>,
    /// HTTP version of the client.
    pub version: HttpVersion,
    /// `user-agent` of the client.
    pub user_agent: Option<HeaderValue>,
}

/// Default idle timeout: time without a byte in either direction after which a connection is closed.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// An established upstream connection.
pub struct Opened {
    /// The connection to the endpoint.
    pub upstream: TcpConnection,
    /// Bytes to send to the endpoint first: the PROXY protocol header.
    pub preface: Bytes,
    /// Idle timeout; `None` for the default.
    pub idle_timeout: Option<Duration>,
    /// Time when the connection is closed, even if it is active.
    pub ends_at: Option<Instant>,
    /// Counts the upstream connection until it is closed.
    pub permit: ConnectionPermit,
    /// Report of the connection's end.
    pub record: Record,
}

/// Finds the destination of a connection, and connects to it.
///
/// # Errors
///
/// The reply for a client that sent a CONNECT; the failure is logged already.
pub async fn open(worker: &Rc<Worker>, asked: DownstreamTcp) -> Result<Opened, LocalReply> {
    let snapshot = worker.snapshot();
    let mut asked = asked;
    let mut record = Record::begin(worker, &mut asked);
    let refusal = match find(worker, &snapshot, &asked, &mut record).await {
        Ok((target, tunnel)) => match connect(worker, &target, tunnel, &mut record).await {
            Ok(made) => {
                record.status = u16::from(record.connect.is_some()) * 200;
                return Ok(made.opened(record));
            }
            Err(refusal) => refusal,
        },
        Err(refusal) => refusal,
    };
    record.refuse(&refusal);
    Err(refusal)
}

/// Finds the destination of a connection, with the address that its client dialed or named.
async fn find(
    worker: &Worker,
    snapshot: &SnapshotRef,
    asked: &DownstreamTcp,
    record: &mut Record,
) -> Result<(Target, Option<Arc<Tunnel>>), LocalReply> {
    // for undecided connections, the client is identified later
    if !record.is_undecided {
        let tls = record.tls.clone();
        record.admit(snapshot, tls.as_ref()).await?;
    }
    let Some(request) = asked.connect.as_deref() else {
        return target(worker, snapshot, asked, record);
    };
    let named = request.named.as_ref().map_err(|reply| reply.clone())?;
    let (target, tunnel) = target(worker, snapshot, asked, record)?;
    if target.cluster().dialed.is_none() {
        return match &**target.cluster().name() {
            BLACK_HOLE => Err(LocalReply::NOT_IN_REGISTRY),
            _ => Ok((target, tunnel)),
        };
    }
    let address = named.address(&worker.names, snapshot).await?;
    Ok((target.dialed(Some(address), worker), tunnel))
}

fn target(
    worker: &Worker,
    snapshot: &SnapshotRef,
    asked: &DownstreamTcp,
    record: &mut Record,
) -> Result<(Target, Option<Arc<Tunnel>>), LocalReply> {
    let no_route = || LocalReply::NO_CONNECTION_RULE;
    let routes = asked.routes.as_ref().ok_or_else(no_route)?;
    let source = Some(asked.remote.ip());
    let named = asked
        .connect
        .as_ref()
        .and_then(|one| one.named.as_ref().ok());
    let head = match named {
        None => OpaqueHead {
            sni: asked.server_name.as_deref(),
            destination: Some(asked.local.ip()),
            source,
        },
        Some(named) => OpaqueHead {
            sni: named.literal().is_none().then_some(&*named.name),
            destination: named.literal(),
            source,
        },
    };
    let Some(rule) = routes.table.find(&head) else {
        if let Some(known) = &routes.federated {
            tell_unknown(worker, asked, known);
        }
        return Err(no_route());
    };
    let route = routes.route(rule);
    let split = route.split.as_ref().ok_or_else(no_route)?;
    let destination: &Destination = match asked.draw {
        Some(draw) => split.at(draw % split.total()),
        None => worker.random(|rng| split.pick(rng)),
    };
    record.cluster = Some(Arc::clone(&destination.name));
    let target = Target::find(snapshot, destination.cluster)
        .ok_or_else(|| Target::unknown(snapshot, destination.cluster))?;
    record.stats = Arc::clone(&target.cluster().stats);
    let literal = named.and_then(|named| Some(SocketAddr::new(named.literal()?, named.port)));
    let target = target.dialed(asked.dialed, worker);
    let target = target.of_pod(asked.dialed.or(literal), head.sni);
    Ok((target, route.tunnel.clone()))
}

/// Makes the choice by weight for a client whose handshake has not begun, so that a connection without a destination ends
/// before it; `None` for such a connection.
pub fn draw(worker: &Worker, asked: &DownstreamTcp) -> Option<u64> {
    let snapshot = worker.snapshot();
    let routes = asked.routes.as_ref()?;
    let head = OpaqueHead {
        sni: asked.server_name.as_deref(),
        destination: Some(asked.local.ip()),
        source: Some(asked.remote.ip()),
    };
    let split = routes.route(routes.table.find(&head)?).split.as_ref()?;
    let draw = worker.random(|rng| rng.random_range(0..split.total()));
    let cluster = snapshot.cluster(split.at(draw).cluster)?;
    let pools = cluster.federation.iter().flat_map(|one| one.pools());
    let pools = pools.filter_map(|pool| snapshot.cluster(pool.cluster));
    let mut all = pools.chain([cluster]);
    let has_endpoint = all.any(|one| !one.endpoints().is_empty() || one.dialed.is_some());
    has_endpoint.then_some(draw)
}

/// Logs the unknown name that a client of another cluster requested, with the known ones: without it neither side could
/// diagnose the problem. At most once per second, since clients may send any name.
#[cold]
fn tell_unknown(worker: &Worker, asked: &DownstreamTcp, known: &Federated) {
    let now = Instant::now();
    let last = worker.told_unknown.replace(Some(now));
    if last.is_some_and(|last| now.duration_since(last) < UNKNOWN_INTERVAL) {
        worker.told_unknown.set(last);
        return;
    }
    let sni = asked.server_name.as_deref().unwrap_or_default();
    let known_hosts = known.hosts.join(", ");
    match known.of_server {
        true => tracing::warn!(
            sni,
            known = known_hosts,
            "no service is known by this name; federated hosts are listed"
        ),
        false => tracing::warn!(
            sni,
            known = known_hosts,
            "no server of the listener takes this name with the ALPN that the client offers, which has to begin with \"istio\"; \
             federated hosts are listed"
        ),
    }
}

/// Minimum interval between two log lines about unknown names.
const UNKNOWN_INTERVAL: Duration = Duration::from_secs(1);

/// An established upstream connection, without its record.
struct UpstreamConnection {
    upstream: TcpConnection,
    preface: Bytes,
    idle_timeout: Option<Duration>,
    ends_at: Option<Instant>,
    permit: ConnectionPermit,
}

impl UpstreamConnection {
    fn opened(self, record: Record) -> Opened {
        Opened {
            upstream: self.upstream,
            preface: self.preface,
            idle_timeout: self.idle_timeout,
            ends_at: self.ends_at,
            permit: self.permit,
            record,
        }
    }
}

/// Connects to an endpoint of the newest snapshot, and to others if that fails or the endpoint is removed.
async fn connect(
    worker: &Rc<Worker>,
    target: &Target,
    tunnel: Option<Arc<Tunnel>>,
    record: &mut Record,
) -> Result<UpstreamConnection, LocalReply> {
    let mut tried = Tried::new();
    let (mut last, mut instead, mut moves) = (None, None, 0);
    let asking = target.clone().asking(ask(target, record));
    let visit = target.visit(record.client.source.ip(), record.started);
    let next = |tried: &mut _| {
        asking
            .newest(worker)?
            .pick_for_connection(worker, visit, tried)
    };
    while let Some(picked) = instead.take().or_else(|| next(&mut tried)) {
        record.goes_to(&picked);
        if record.connect.is_some() && is_loop(&picked.endpoint().address, target.snapshot()) {
            return Err(LocalReply::PROXY_ITSELF);
        }
        let connecting = connect_to(worker, &picked, target, &tunnel, record);
        let may = Moves {
            at_all: moves < MOVES_MAX,
            readdressed: true,
        };
        let watch = EndpointWatch::new(worker, may);
        match watch.over(&picked, Some(&tried), || true, connecting).await {
            Ok(Ok(made)) => {
                picked.report(Outcome::Connected);
                record.ends = Some(Rc::clone(&made.upstream.ends));
                return Ok(made);
            }
            Ok(Err(error)) if error.kind() == Kind::Overflow => {
                return Err(LocalReply::from_kind(Kind::Overflow));
            }
            Ok(Err(error)) => {
                let cluster = target.cluster().name();
                let endpoint = &picked.endpoint().address;
                tracing::debug!(%cluster, %endpoint, %error, "cannot connect");
                if let Some(outcome) = health::of_failure(error.kind()) {
                    picked.report(outcome);
                }
                record.failure = Some(failure(&error));
                last = Some(LocalReply::from_error(&error));
            }
            Err(other) => {
                moves += 1;
                record.attempts -= 1;
                tried.pop();
                tried.push(other.endpoint_ref());
                instead = Some(*other);
            }
        }
    }
    Err(match last {
        None => match target.newest(worker) {
            Some(target) => target.no_endpoint_reply(),
            None => Target::unknown(&worker.snapshot(), target.cluster().id()),
        },
        Some(reply) => LocalReply {
            details: "".into(),
            flags: ResponseFlags::UF.union(ResponseFlags::URX),
            ..reply
        },
    })
}

/// Connects to one endpoint.
async fn connect_to(
    worker: &Worker,
    picked: &PickedEndpoint,
    target: &Target,
    tunnel: &Option<Arc<Tunnel>>,
    record: &Record,
) -> Result<UpstreamConnection, Error> {
    let pool_target = picked.pool_target(&record.client, target.cluster().protocol);
    let counts = &worker.pools.counts().of(pool_target.cluster);
    let permit = ConnectionPermit::acquire_strictly(pool_target.cluster, pool_target.state.id);
    let Some(permit) = permit else {
        counts.add(Counter::OverflowConnections, 1);
        return Err(Error::new(Kind::Overflow));
    };
    let made = Instant::now();
    let mut settings = pool_target.connect_settings();
    // in plain text it is sent with the first bytes of the client, in TLS before the handshake
    let announced = settings.announced.take_if(|_| settings.tls.is_none());
    let upstream = dial(pool_target.reach, &settings, tunnel.as_deref(), counts).await?;
    let settings = pool_target.settings;
    Ok(UpstreamConnection {
        upstream,
        preface: announced.map(|who| who.header()).unwrap_or_default(),
        idle_timeout: settings.tcp_idle_timeout,
        ends_at: settings.connection_duration_max.map(|max| made + max),
        permit,
    })
}

/// The reason for a failed connection, for the access log.
fn failure(error: &Error) -> Box<str> {
    if let Some(reason) = error.transport() {
        return Box::from(&**reason);
    }
    let cause = std::error::Error::source(error);
    match (error.kind(), cause) {
        (Kind::ConnectTimeout, _) => "connection timeout".into(),
        (_, Some(cause)) => format!("remote connection failure: {cause}").into(),
        (_, None) => "remote connection failure".into(),
    }
}

/// Inputs of picks: the hash of the client's address, if the cluster uses it.
fn ask(target: &Target, record: &Record) -> PickInput {
    let by_address = matches!(target.cluster().hash_key(), Some(HashKey::SourceIp));
    let client = by_address.then(|| record.client.source.ip());
    PickInput {
        hash: client.map(of_address),
        ..PickInput::default()
    }
}

/// Everything that the end of a connection reports; reported when it is dropped.
pub struct Record {
    worker: Rc<Worker>,
    listener: Arc<ListenerKey>,
    start: SystemTime,
    started: Instant,
    client: Client,
    server_name: Option<Arc<str>>,
    /// TLS handshake results, kept until the metrics are known.
    tls: Option<Rc<Handshake>>,
    /// Identity of the client.
    principal: Option<Box<str>>,
    /// The CONNECT request.
    connect: Option<Box<ConnectRequest>>,
    /// Status of the response to the CONNECT; 0 for none.
    status: u16,
    cluster: Option<Arc<str>>,
    /// Key and tier of the picked member, with several members; else the name of the cluster.
    member: Option<(Arc<str>, Option<u8>)>,
    /// Number of attempts.
    attempts: u32,
    stats: Arc<RequestStats>,
    /// Endpoint where the connection counts as active until the record ends.
    endpoint: Option<Arc<EndpointState>>,
    address: Option<Address>,
    ends: Option<Rc<ConnectionInfo>>,
    failure: Option<Box<str>>,
    details: Option<Cow<'static, str>>,
    termination: Option<Cow<'static, str>>,
    flags: ResponseFlags,
    received: u64,
    sent: u64,
    /// Whether the client is not identified yet.
    is_undecided: bool,
    /// Whether no policy judges the connection: AUTO_PASSTHROUGH carries TLS of the mesh, which the workload's own proxy
    /// judges.
    is_unjudged: bool,
    counted: bool,
    /// Waits for a change of policies that denies the connection.
    pub denial: Option<Denial>,
}

impl Record {
    fn begin(worker: &Rc<Worker>, asked: &mut DownstreamTcp) -> Self {
        Self {
            worker: Rc::clone(worker),
            listener: Arc::clone(&asked.listener),
            start: SystemTime::now(),
            started: Instant::now(),
            client: Client {
                source: asked.remote,
                destination: asked.local,
            },
            server_name: asked.server_name.clone(),
            principal: PeerIdentity::new(asked.tls.as_deref())
                .principal()
                .map(Into::into),
            tls: asked.tls.take(),
            connect: asked.connect.clone(),
            status: 0,
            cluster: None,
            member: None,
            attempts: 0,
            stats: Arc::clone(&worker.unrouted),
            endpoint: None,
            address: None,
            ends: None,
            failure: None,
            details: None,
            termination: None,
            flags: ResponseFlags::DC,
            received: 0,
            sent: 0,
            is_undecided: asked.is_undecided,
            is_unjudged: asked
                .routes
                .as_ref()
                .is_some_and(|routes| routes.federated.is_some()),
            counted: false,
            denial: None,
        }
    }

    /// Records the endpoint of an attempt, and counts the connection as active there.
    fn goes_to(&mut self, picked: &PickedEndpoint) {
        let endpoint = picked.endpoint();
        endpoint.state.enter();
        if let Some(before) = self.endpoint.replace(Arc::clone(&endpoint.state)) {
            before.leave();
        }
        self.address = Some(endpoint.address.clone());
        self.cluster = Some(Arc::clone(picked.cluster().name()));
        self.member = Some(match picked.pool() {
            Some(pool) => (Arc::clone(&pool.member), Some(pool.tier)),
            None => (Arc::clone(endpoint.stats.cluster()), None),
        });
        self.attempts += 1;
        picked.attempted(0, &self.worker);
        if self.is_undecided {
            self.stats = Arc::clone(&endpoint.stats);
        } else if !self.counted {
            let (handshake, base) = (self.tls.take(), &endpoint.stats);
            let registry = &self.worker.telemetry.stats;
            let of_peer = peer::stats(handshake.as_deref(), base, registry);
            self.stats = of_peer.unwrap_or_else(|| Arc::clone(base));
            self.tag();
            self.stats.tcp().opened(self.worker.id);
            self.counted = true;
        }
    }

    /// Counts the connection once its client is identified.
    ///
    /// # Errors
    ///
    /// The reply for a client that is not admitted.
    pub async fn decided(
        &mut self,
        tls: Option<Rc<Handshake>>,
        server_name: Option<Arc<str>>,
    ) -> Result<(), LocalReply> {
        self.is_undecided = false;
        let principal = PeerIdentity::new(tls.as_deref()).principal();
        self.principal = principal.map(Into::into);
        self.server_name = server_name.or_else(|| tls.as_deref()?.server_name.clone());
        let registry = &self.worker.telemetry.stats;
        if let Some(of_peer) = peer::stats(tls.as_deref(), &self.stats, registry) {
            self.stats = of_peer;
        }
        self.tag();
        self.stats.tcp().opened(self.worker.id);
        self.counted = true;
        let snapshot = self.worker.snapshot();
        self.admit(&snapshot, tls.as_ref()).await
    }

    /// Checks the admission of the connection, by the current policies of its listener.
    async fn admit(
        &mut self,
        snapshot: &SnapshotRef,
        handshake: Option<&Rc<Handshake>>,
    ) -> Result<(), LocalReply> {
        let tls = handshake.map(|tls| &**tls);
        let listener = snapshot.listener(&self.listener, self.client.destination);
        let listener = listener.ok_or(LocalReply::NO_CONNECTION_RULE)?;
        let peer = PeerIdentity::new(tls);
        admit(listener, peer)?;
        if self.is_unjudged || !listener.direction.is_judged() {
            return Ok(());
        }
        self.denial = recheck::of_connection(&self.worker, || TcpClient {
            listener: Arc::clone(&self.listener),
            client: self.client,
            server_name: self.server_name.clone(),
            tls: handshake.cloned(),
        });
        let Some(authorization) = authorize::of_listener(snapshot, listener) else {
            return Ok(());
        };
        let (client, server_name) = (self.client, self.server_name.as_deref());
        let is_detected =
            matches!(&listener.service, Service::Detected(detected) if detected.http.is_some());
        let asked = match authorization.tcp.custom.is_empty() {
            true => Ok(()),
            false => {
                let worker = &self.worker;
                // boxed: few proxies have policies that ask
                Box::pin(ext_authz::authorize_connection(
                    worker,
                    snapshot,
                    &authorization.tcp,
                    client,
                    ext_authz::Facts {
                        tls,
                        server_name,
                        is_detected,
                    },
                ))
                .await
            }
        };
        let judged = asked.and_then(|()| {
            let policies = &authorization.tcp;
            authorize::authorize_connection(&self.worker, policies, client, peer, server_name)
        });
        judged.map_err(|reason| {
            self.termination = Some(reason.into());
            LocalReply {
                details: "".into(),
                ..LocalReply::DENIED
            }
        })
    }

    /// Records bytes received from and sent to the client.
    pub fn carried(&mut self, received: u64, sent: u64) {
        self.received += received;
        self.sent += sent;
        self.stats.tcp().carried(self.worker.id, received, sent);
    }

    /// Ends the record of a failed connection; `reply` is for a client that sent a CONNECT.
    pub fn refuse(mut self, reply: &LocalReply) {
        self.details = (!reply.details.is_empty()).then(|| reply.details.clone());
        if self.connect.is_some() {
            self.status = reply.status.as_u16();
        }
        self.finish(reply.flags, None);
    }

    /// Ends the record with its flags, and with the reason if the proxy closed the connection.
    pub fn finish(mut self, flags: ResponseFlags, termination: Option<Cow<'static, str>>) {
        self.flags = flags;
        self.termination = termination.or(self.termination.take());
    }

    /// Chooses metrics with the connection's own values, if they are labels.
    fn tag(&mut self) {
        let (snapshot, local) = (self.worker.snapshot(), self.client.destination);
        let choice = LogChoice::of(&self.worker, &snapshot, &self.listener, local);
        if let Some(LogChoice::Planned(plan)) = choice
            && let Some(tagged) =
                plan.metrics_of_connection(&self.worker, &self.entry(), &self.stats)
        {
            self.stats = tagged;
        }
    }

    fn log(&self, choice: &LogChoice) {
        let entry = self.entry();
        match choice {
            LogChoice::Fixed => self.worker.access_log.log(&entry),
            LogChoice::Planned(plan) => {
                plan.write(&self.worker, &entry, self.connect.is_none());
            }
        }
    }

    fn entry(&self) -> Entry<'_> {
        let upstream_host = match (&self.ends, &self.address) {
            (Some(ends), _) => Some(host(&ends.remote)),
            (None, Some(address)) => Some(host(address)),
            (None, None) => None,
        };
        let member = self.member.as_ref();
        let request = self.connect.as_deref();
        let authority = request.and_then(|request| request.authority.as_ref());
        let user_agent = request.and_then(|request| request.user_agent.as_ref());
        Entry {
            start: self.start,
            method: request.map(|_| "CONNECT"),
            version: request.map(|request| request.version),
            response_code: self.status,
            authority: authority.map(|authority| authority.as_str().as_bytes()),
            user_agent: user_agent.map(HeaderValue::as_bytes),
            flags: self.flags,
            response_code_details: self.details.as_deref(),
            connection_termination_details: self.termination.as_deref(),
            upstream_transport_failure_reason: self.failure.as_deref(),
            bytes_received: self.received,
            bytes_sent: self.sent,
            duration: self.started.elapsed(),
            upstream_host,
            upstream_cluster: self.cluster.as_deref(),
            destination_cluster: member.map(|(member, _)| &**member),
            destination_tier: member.and_then(|(_, tier)| *tier),
            attempts: self.attempts,
            upstream_local_address: self.ends.as_ref().and_then(|ends| ends.local),
            downstream_local_address: Some(self.client.destination),
            downstream_remote_address: Some(self.client.source),
            requested_server_name: self.server_name.as_deref(),
            downstream_peer_uri_san: self.principal.as_deref(),
            ..Entry::default()
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(endpoint) = &self.endpoint {
            endpoint.leave();
        }
        if !self.counted {
            self.stats.tcp().opened(self.worker.id);
        }
        self.stats.tcp().closed(self.worker.id, self.flags);
        let snapshot = self.worker.snapshot();
        let local = self.client.destination;
        if snapshot.hides_unrouted && self.flags.contains(ResponseFlags::NR) {
            return;
        }
        if let Some(choice) = LogChoice::of(&self.worker, &snapshot, &self.listener, local) {
            self.log(&choice);
        }
    }
}

/// The side that broke a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Downstream,
    /// The endpoint.
    Upstream,
}

/// Flags of a connection that a side broke.
pub fn broken(side: Side, error: &io::Error) -> ResponseFlags {
    tracing::debug!(?side, %error, "connection broke");
    match side {
        Side::Downstream => ResponseFlags::DC,
        Side::Upstream => ResponseFlags::UC,
    }
}
