//! Inbound listeners of a sidecar: one for each port that its Sidecar names or its services have, and one for all other
//! ports.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use config_loader::resource::istio::{Bind, CaptureMode, IngressListener, LocalEndpoint, Protocol};

use crate::compile::applies::workload;
use crate::compile::clusters::Clusters;
use crate::compile::clusters::special::{INBOUND_PASSTHROUGH, OwnPort};
use crate::compile::listeners::opaque::assemble;
use crate::compile::peers::PortTls;
use crate::compile::rules::limits;
use crate::compile::service::Service as Host;
use crate::compile::service::port::Carries;
use crate::snapshot::{
    Destination, Detected, Direction, HttpHosts, Intake, ListenAddress, ListenerKey, MeshTls,
    Route, Service, TlsBytes, VirtualHost,
};
use crate::tls::Alpn;
use crate::upstream::Protocol as HttpVersionPolicy;
use traffic::cluster::Split;
use traffic::filter::{Early, RouteFilters};
use traffic::limit::RouteLimits;
use traffic::provenance::Provenance;
use traffic::route::{Conditions, OpaqueConditions, Rule, Table};

use super::made::{Made, Wanted, captured_port};
use super::outbound::{detected, http_of, name_of, opaque_of};
use super::own_tls::OwnTls;
use super::tcp::to;

/// Adds the inbound listeners.
pub(super) fn compile(made: &mut Made<'_>, clusters: &mut Clusters<'_>) {
    let ingress = made
        .sidecar
        .map_or(&[][..], |sidecar| &sidecar.spec.ingress);
    match ingress {
        [] => of_services(made, clusters),
        entries => entries
            .iter()
            .for_each(|entry| of_entry(made, entry, clusters)),
    }
    if made.inputs.identity.sockets.inbound.is_some() {
        let rest = Inbound {
            key: captured_port(Intake::CapturedInbound, 0),
            to: clusters.special(INBOUND_PASSTHROUGH),
            port: 0,
            carries: Carries::Detect,
            own_tls: None,
            provenance: made.at(0),
            at: sidecar_or(made, None),
            limits: None,
        };
        add(made, rest, clusters);
    }
}

/// Settings of an inbound listener.
struct Inbound {
    key: ListenerKey,
    /// Cluster that connections go to.
    to: (Arc<str>, traffic::registry::ClusterId),
    /// Port of the workload; 0 for ports that no resource names.
    port: u16,
    carries: Carries,
    /// TLS that ends here by the Sidecar's `ingress[].tls`.
    own_tls: Option<OwnTls>,
    /// Resources that the listener was made from.
    provenance: Vec<Provenance>,
    /// Location of the resource that the route comes from.
    at: Provenance,
    /// Limits on requests.
    limits: Option<Arc<RouteLimits>>,
}

/// Adds the listeners for the ports of the services that select the workload.
fn of_services(made: &mut Made<'_>, clusters: &mut Clusters<'_>) {
    if made.inputs.identity.sockets.inbound.is_none() {
        return;
    }
    for (number, (service, port)) in own_ports(made, clusters) {
        let pool = made
            .sidecar
            .and_then(|sidecar| sidecar.spec.inbound_connection_pool.as_deref());
        let localhost = (made.inputs.identity.mesh_config.serves_localhost)
            .then(|| LocalEndpoint::Loopback(Ipv4Addr::LOCALHOST.into(), number));
        let own = OwnPort {
            service: Some(&service),
            carries: port.carries,
            protocol: port.protocol,
            number,
            endpoint: localhost.as_ref(),
            pool,
        };
        let at = sidecar_or(made, Some(&service));
        let inbound = Inbound {
            key: captured_port(Intake::CapturedInbound, number),
            to: clusters.own_port(&own),
            port: number,
            carries: port.carries,
            own_tls: None,
            provenance: vec![at.clone()],
            limits: limits::of_service(&at, clusters),
            at,
        };
        add(made, inbound, clusters);
    }
}

/// Port of a service, as the workload has it.
struct OfService {
    carries: Carries,
    protocol: HttpVersionPolicy,
}

/// Returns the ports on which the workload accepts connections according to the services that select it. If several
/// services have a port, the oldest one decides.
fn own_ports(made: &Made<'_>, clusters: &Clusters<'_>) -> BTreeMap<u16, (Arc<Host>, OfService)> {
    let identity = made.inputs.identity;
    let beside = workload(identity);
    let mut objects: Vec<_> = made
        .inputs
        .resources
        .services
        .values()
        .filter(|object| {
            let selector = &object.spec.selector;
            *object.id.namespace == *identity.namespace
                && !selector.is_empty()
                && beside.is_selected_by(selector)
        })
        .map(|object| {
            let (name, namespace) = (&object.id.name, &object.id.namespace);
            (
                object.age(),
                format!("{name}.{namespace}.svc.{}", identity.domain),
            )
        })
        .collect();
    let entries = made.inputs.resources.service_entries.values();
    for entry in entries {
        let selector = entry.spec.workload_selector.as_ref();
        if *entry.id.namespace == *identity.namespace
            && selector.is_some_and(|selector| beside.is_selected_by(selector))
        {
            let hosts = entry.spec.hosts.iter();
            objects.extend(hosts.map(|host| (entry.age(), host.value.to_ascii_lowercase())));
        }
    }
    objects.sort();
    let mut ports = BTreeMap::new();
    for (_, host) in objects {
        let Some(service) = clusters.services().find(clusters.view(), &host) else {
            continue;
        };
        for port in &service.ports {
            // the endpoints resolve a named target port
            let mut listed = service.endpoints.iter();
            let own = listed.find_map(|workload| workload.port(port));
            let number = own.unwrap_or(port.target);
            let of_service = OfService {
                carries: port.carries,
                protocol: port.protocol,
            };
            ports
                .entry(number)
                .or_insert_with(|| (Arc::clone(service), of_service));
        }
    }
    ports
}

/// Adds the listener of an entry of `ingress`.
fn of_entry(made: &mut Made<'_>, entry: &IngressListener, clusters: &mut Clusters<'_>) {
    let number = entry.port.number;
    let is_captured = made.inputs.identity.sockets.inbound.is_some();
    let has_socket = match entry.capture {
        CaptureMode::None => true,
        CaptureMode::Default => !is_captured,
        CaptureMode::Iptables => false,
    };
    let all = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, number));
    let key = match (&entry.bind, has_socket) {
        (Bind::Unix(path), _) => ListenerKey::from(ListenAddress::Unix(Arc::clone(path))),
        (Bind::Default, true) => all.into(),
        (Bind::Ip(ip), true) => SocketAddr::new(*ip, number).into(),
        (_, false) => captured_port(Intake::CapturedInbound, number),
    };
    let loopback = LocalEndpoint::Loopback([127, 0, 0, 1].into(), number);
    // without capture, the address that the client dialed is unknown
    let endpoint = entry.default_endpoint.as_ref();
    let endpoint = endpoint.or_else(|| has_socket.then_some(&loopback));
    let services = own_ports(made, clusters);
    let service = services.get(&number).map(|(service, _)| service);
    let sidecar = made.sidecar.map(|sidecar| &sidecar.spec);
    let pool = entry.connection_pool.as_deref();
    let pool = pool.or_else(|| sidecar?.inbound_connection_pool.as_deref());
    let own_tls = OwnTls::of(made, entry);
    let carries = match (&own_tls, entry.port.protocol) {
        (None, protocol) => Carries::of_protocol(protocol),
        (Some(_), Protocol::Https) => Carries::Http,
        (Some(_), _) => Carries::Bytes,
    };
    let own = OwnPort {
        service: service.map(|service| &**service),
        carries,
        protocol: match entry.port.protocol.is_http2() {
            true => HttpVersionPolicy::Http2,
            false => HttpVersionPolicy::Http1,
        },
        number,
        endpoint,
        pool,
    };
    let provenance = made.at(entry.line.0);
    let at = provenance.first().cloned();
    let written = service.and_then(|service| service.written());
    let inbound = Inbound {
        key,
        to: clusters.own_port(&own),
        port: number,
        carries: own.carries,
        own_tls,
        at: at.unwrap_or_else(|| sidecar_or(made, None)),
        limits: written.and_then(|written| limits::of_service(&written, clusters)),
        provenance,
    };
    add(made, inbound, clusters);
}

/// Returns the location of the resource behind a route: a service, else the Sidecar, else the proxy itself.
fn sidecar_or(made: &Made<'_>, service: Option<&Host>) -> Provenance {
    let written = service.and_then(|service| service.written());
    let own = || Provenance {
        object: "--mode sidecar".into(),
        file: "".into(),
        line: 0,
    };
    match written {
        Some(written) => written,
        None => made.at(0).into_iter().next().unwrap_or_else(own),
    }
}

fn add(made: &mut Made<'_>, inbound: Inbound, clusters: &mut Clusters<'_>) {
    let Inbound {
        key,
        to: (name, cluster),
        port,
        carries,
        own_tls,
        provenance,
        at,
        limits,
    } = inbound;
    let before = made.before(&key);
    let destination = Destination {
        name,
        cluster,
        position: 0,
        provenance: at,
    };
    let is_http = carries.may_be_http();
    let is_grpc_web = carries == Carries::GrpcWeb;
    let before_http = before.and_then(http_of);
    let http = is_http.then(|| hosts(&destination, limits, is_grpc_web, before_http, clusters));
    let compiled = vec![to(destination, OpaqueConditions::default())];
    let opaque = assemble(compiled, None, before.and_then(opaque_of));
    if let Some(own) = own_tls {
        let wanted = Wanted {
            direction: Direction::Inbound,
            protocols: vec![own.protocol],
            skipped: Vec::new(),
            service: own.service(http, opaque, &provenance, before),
            provenance,
        };
        return made.add(key, wanted);
    }
    let alpn = if is_http { Alpn::Http } else { Alpn::None };
    let tls = match made.peers.on_port(port, alpn) {
        // without a certificate there is no mesh mTLS; plain text is accepted unless mTLS is required
        None
        | Some(PortTls {
            tls: None,
            strict: false,
        }) => TlsBytes::Opaque,
        Some(PortTls { tls, strict }) => TlsBytes::Mesh(MeshTls { tls, strict }),
    };
    let service = match (&http, &tls) {
        (None, TlsBytes::Opaque) => Service::Opaque(opaque),
        _ => detected(
            Detected {
                http,
                declares_http: is_http && carries != Carries::Detect,
                tls,
                opaque,
                ..Detected::default()
            },
            before,
        ),
    };
    let wanted = Wanted {
        direction: Direction::Inbound,
        protocols: vec![name_of(carries)],
        provenance,
        skipped: Vec::new(),
        service,
    };
    made.add(key, wanted);
}

/// Returns one virtual host for all requests; that of the previous snapshot if it is the same.
fn hosts(
    destination: &Destination,
    limits: Option<Arc<RouteLimits>>,
    is_grpc_web: bool,
    before: Option<&Arc<HttpHosts>>,
    clusters: &Clusters<'_>,
) -> Arc<HttpHosts> {
    let mut hasher = DefaultHasher::new();
    (&destination.name, &destination.provenance, is_grpc_web).hash(&mut hasher);
    let policy = limits.as_ref();
    policy
        .map(|limits| (limits.fingerprint, &limits.provenance))
        .hash(&mut hasher);
    let fingerprint = hasher.finish();
    if let Some(before) = before
        && let [host] = &*before.virtual_hosts
        && host.fingerprint == fingerprint
    {
        return Arc::clone(before);
    }
    let name: Arc<str> = "default".into();
    let mut filters = RouteFilters::default();
    filters.retry = Some(Arc::clone(clusters.inbound_retries()));
    if limits.is_some() {
        filters.early = Some(Box::new(Early {
            limits,
            ..Early::default()
        }));
    }
    let provenance = destination.provenance.clone();
    let rule = Rule {
        name: Arc::clone(&name),
        conditions: Conditions::default(),
        provenance: provenance.clone(),
    };
    let route = Route {
        name,
        provenance,
        stats: None,
        rule_stats: None,
        filters,
        split: Split::build(vec![(1, destination.clone())]),
        mirrors: None,
        shares: Box::default(),
    };
    let host = VirtualHost {
        name: "*".into(),
        table: Table::compile(vec![rule]),
        routes: Arc::new([route]),
        is_grpc_web,
        cause: None,
        fingerprint,
    };
    Arc::new(HttpHosts::with_aliases(vec![Arc::new(host)], Vec::new()))
}
