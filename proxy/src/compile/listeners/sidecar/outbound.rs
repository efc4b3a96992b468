//! Outbound listeners of a sidecar: one for each port of the services that its Sidecar makes visible, and one for all
//! other ports.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use config_loader::catalog::View;
use config_loader::catalog::gateway_api::MeshRoutes;
use config_loader::resource::istio::{Bind, CaptureMode, EgressListener};
use ipnet::IpNet;

use crate::compile::clusters::Clusters;
use crate::compile::listeners::chains::{http_hosts, opaque_routes};
use crate::compile::listeners::opaque::{Compiled, assemble};
use crate::compile::route_source::RouteSource;
use crate::compile::service::Service as Host;
use crate::compile::service::port::{Carries, Port};
use crate::compile::update::visible_routes::VisibleRoutes;
use crate::identity::Identity;
use crate::snapshot::{
    Detected, Direction, HttpHosts, Intake, ListenAddress, ListenerKey, OpaqueRoutes, Service,
    TlsBytes,
};
use traffic::provenance::Provenance;

use super::http_proxy::Named;
use super::made::{Made, Wanted, captured_port};
use super::named::{ByHost, MESH, NamedHosts, by_host};
use super::sorted::Sorted;
use super::tcp::{ConnectionRules, rest};
use super::unknown::Unknown;

/// Adds the outbound listeners.
pub(super) fn compile(made: &mut Made<'_>, routes: &VisibleRoutes, clusters: &mut Clusters<'_>) {
    let identity = made.inputs.identity;
    let unknown = Unknown::of(made.sidecar, identity);
    let egress = made
        .sidecar
        .and_then(|sidecar| sidecar.spec.egress.as_deref());
    let mut placed: BTreeMap<ListenerKey, OnPort> = BTreeMap::new();
    let mut services: Vec<Arc<Host>> = clusters.services().of_clients(clusters.view()).collect();
    services.sort_by(|a, b| a.host.cmp(&b.host));
    for service in &services {
        for port in &service.ports {
            place(made, egress, service, port, &mut placed);
        }
    }
    // ports of the Sidecar have a listener even if no service has them
    for entry in egress.into_iter().flatten() {
        if let Some(port) = &entry.port {
            for key in keys(made, Some(entry), port.number) {
                placed.entry(key).or_default().ask(entry);
            }
        }
    }
    for intake in outbound_intakes(made) {
        placed.entry(captured_port(intake, 80)).or_default();
    }
    let of_services = MeshRoutes::of(clusters.view(), &identity.domain);
    let mut by_entry: BTreeMap<Option<usize>, Rules> = BTreeMap::new();
    for (key, on_port) in placed {
        let entry = egress.and_then(|egress| position(egress, key.address.port()));
        let rules = by_entry.entry(entry).or_insert_with(|| {
            let entry = egress.map(|egress| entry.and_then(|at| egress.get(at)));
            Rules::of(entry, routes, clusters.view(), identity)
        });
        let routing = Routing {
            rules,
            unknown: &unknown,
            routes,
            of_services: &of_services,
        };
        add(made, key, &on_port, &routing, clusters);
    }
    add_rest(made, &unknown, clusters);
    if identity.sockets.http_proxy.is_some() {
        let rest = captured_port(Intake::HttpProxy, 0);
        let routing = Routing {
            rules: &Rules::default(),
            unknown: &unknown,
            routes,
            of_services: &of_services,
        };
        add(made, rest, &OnPort::default(), &routing, clusters);
    }
}

/// Route sources that apply to an entry of `egress`, by the kind of their rules.
#[derive(Default)]
struct Rules<'a> {
    http: ByHost<'a>,
    tcp: ByHost<'a>,
    tls: ByHost<'a>,
}

impl<'a> Rules<'a> {
    /// Returns all sources of the mesh if no Sidecar limits the egress; none if no entry is for the port.
    fn of(
        entry: Option<Option<&EgressListener>>,
        routes: &'a VisibleRoutes,
        view: View<'_>,
        identity: &Identity,
    ) -> Self {
        let (domain, own) = (&identity.domain, &identity.namespace);
        let reaches = |namespace: &str, host: &str| match entry {
            None => true,
            Some(None) => false,
            Some(Some(entry)) => entry.overlaps(namespace, host, own),
        };
        let counts = |source: &&RouteSource| {
            let mut hosts = source.hosts(domain);
            source.is_attached_to(&MESH) && hosts.any(|host| reaches(&source.id().namespace, &host))
        };
        let counting: Vec<_> = routes.all(view).iter().filter(counts).collect();
        Self {
            http: by_host(&counting, domain, |source| !source.http(view).is_empty()),
            tcp: by_host(&counting, domain, |source| !source.tcp(view).is_empty()),
            tls: by_host(&counting, domain, |source| !source.tls(view).is_empty()),
        }
    }
}

/// Route sources for the services of a listener, and the destination of everything else.
struct Routing<'a> {
    rules: &'a Rules<'a>,
    /// Destination of hosts without a service.
    unknown: &'a Unknown<'a>,
    routes: &'a VisibleRoutes,
    /// Routes whose parents are services.
    of_services: &'a MeshRoutes<'a>,
}

/// Services of one listener, with the port of each.
#[derive(Default)]
struct OnPort {
    services: Vec<(Arc<Host>, Port)>,
    /// Line of the Sidecar's entry; 0 if no entry names the port.
    line: u32,
    /// Protocol that the Sidecar's entry for this port declares; `None` if no entry names the port.
    asked: Option<Carries>,
}

impl OnPort {
    fn ask(&mut self, entry: &EgressListener) {
        self.line = entry.line.0;
        self.asked = declared(entry);
    }

    /// Whether the listener detects HTTP.
    fn has_http(&self, number: u16, sorted: &Sorted) -> bool {
        match self.asked {
            Some(carries) => carries.may_be_http(),
            None => !sorted.http.is_empty() || number == 80,
        }
    }
}

/// Returns the protocol that an entry declares for its port.
fn declared(entry: &EgressListener) -> Option<Carries> {
    let port = entry.port.as_ref()?;
    Some(Carries::of_protocol(port.protocol))
}

/// Returns the position of the `egress` entry for services of a port: the entry with this port, else the one without a
/// port.
fn position(egress: &[EgressListener], port: u16) -> Option<usize> {
    let of_port = |entry: &EgressListener| {
        let number = entry.port.as_ref().map(|port| port.number);
        number == Some(port)
    };
    let rest = || egress.iter().position(|entry| entry.port.is_none());
    egress.iter().position(of_port).or_else(rest)
}

/// Adds a port of a service to the listeners through which the workload reaches it.
fn place(
    made: &Made<'_>,
    egress: Option<&[EgressListener]>,
    service: &Arc<Host>,
    port: &Port,
    placed: &mut BTreeMap<ListenerKey, OnPort>,
) {
    let own = &made.inputs.identity.namespace;
    let mut put = |entry: Option<&EgressListener>| {
        for key in keys(made, entry, port.number) {
            let on_port = placed.entry(key).or_default();
            let mut port = port.clone();
            if let Some(entry) = entry {
                on_port.ask(entry);
                // the protocol of the Sidecar takes precedence over that of the service
                let declared = declared(entry).filter(|carries| *carries != Carries::Detect);
                port.carries = declared.unwrap_or(port.carries);
            }
            // several entries may lead to the HTTP proxy
            let last = on_port.services.last();
            if last.is_none_or(|(last, _)| !Arc::ptr_eq(last, service)) {
                on_port.services.push((Arc::clone(service), port));
            }
        }
    };
    let Some(egress) = egress else {
        return put(None);
    };
    let reaches = |entry: &&EgressListener| entry.reaches(&service.namespace, &service.host, own);
    // an entry with a Unix socket is for every port
    let is_unix = |entry: &&EgressListener| matches!(entry.bind, Bind::Unix(_));
    egress
        .iter()
        .filter(is_unix)
        .filter(reaches)
        .for_each(|entry| put(Some(entry)));
    let entry = position(egress, port.number).and_then(|at| egress.get(at));
    if let Some(entry) = entry.filter(|entry| reaches(entry) && !is_unix(entry)) {
        put(Some(entry));
    }
}

/// Returns the ways in which the workload's connections reach listeners without a socket.
fn outbound_intakes(made: &Made<'_>) -> impl Iterator<Item = Intake> + use<> {
    let sockets = made.inputs.identity.sockets;
    let captured = sockets.outbound.map(|_| Intake::CapturedOutbound);
    let proxied = sockets.http_proxy.map(|_| Intake::HttpProxy);
    captured.into_iter().chain(proxied)
}

/// Returns the keys of the listeners of an entry for a port: its socket if the application dials it, else captured
/// connections; and the HTTP proxy.
fn keys(made: &Made<'_>, entry: Option<&EgressListener>, port: u16) -> Vec<ListenerKey> {
    let is_captured = made.inputs.identity.sockets.outbound.is_some();
    let Some(entry) = entry else {
        let intakes = outbound_intakes(made);
        return intakes.map(|intake| captured_port(intake, port)).collect();
    };
    let has_socket = match entry.capture {
        CaptureMode::None => true,
        CaptureMode::Default => !is_captured,
        CaptureMode::Iptables => false,
    };
    let key = match (&entry.bind, has_socket) {
        (Bind::Unix(path), _) => ListenerKey::from(ListenAddress::Unix(Arc::clone(path))),
        (Bind::Default, true) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into(),
        (Bind::Ip(ip), true) => SocketAddr::new(*ip, port).into(),
        (Bind::Default, false) => captured_port(Intake::CapturedOutbound, port),
        (Bind::Ip(ip), false) => {
            ListenerKey::for_captured(Intake::CapturedOutbound, SocketAddr::new(*ip, port))
        }
    };
    let proxied = made.inputs.identity.sockets.http_proxy;
    let proxied = proxied.map(|_| captured_port(Intake::HttpProxy, port));
    [key].into_iter().chain(proxied).collect()
}

/// Adds the listener for all services of a port, and those for single addresses of some services.
fn add(
    made: &mut Made<'_>,
    key: ListenerKey,
    on_port: &OnPort,
    routing: &Routing<'_>,
    clusters: &mut Clusters<'_>,
) {
    let before = made.before(&key);
    let sorted = Sorted::of(&on_port.services, key.has_socket(), clusters);
    let connections = ConnectionRules {
        inputs: made.inputs,
        key: &key,
        tcp: &routing.rules.tcp,
        tls: &routing.rules.tls,
    };
    let is_proxied = key.intake == Intake::HttpProxy;
    let has_http = is_proxied || on_port.has_http(key.address.port(), &sorted);
    let http = has_http.then(|| {
        let hosts = NamedHosts {
            inputs: made.inputs,
            key: &key,
            before: before.and_then(http_of),
            sources: &routing.rules.http,
            visible: routing.routes,
            of_services: routing.of_services,
            unknown: routing.unknown,
        };
        hosts.compile(&sorted.http, clusters)
    });
    let (tls, opaque) = match is_proxied {
        false => bytes(&sorted, &connections, routing.unknown, before, clusters),
        true => {
            let named = Named::new(&on_port.services, &sorted.tls, &connections);
            let routes = named.routes(routing.unknown, before.and_then(opaque_of), clusters);
            (TlsBytes::Opaque, routes)
        }
    };
    let provenance = made.at(on_port.line);
    if key.intake == Intake::CapturedOutbound {
        let of_port = PortWide {
            connections: &connections,
            http: http.as_ref(),
            provenance: &provenance,
        };
        add_exact(made, &sorted, &of_port, clusters);
    }
    let mut client_first = sorted.client_first;
    client_first.sort_unstable();
    client_first.dedup();
    let port_wide = Detected {
        http,
        tls,
        opaque,
        client_first: client_first.into(),
        ..Detected::default()
    };
    let wanted = Wanted {
        direction: Direction::Outbound,
        protocols: protocols(&on_port.services),
        provenance,
        skipped: Vec::new(),
        service: match (&port_wide.http, &port_wide.tls) {
            // no bytes of a connection have to be inspected
            (None, TlsBytes::Opaque) => Service::Opaque(port_wide.opaque),
            _ => detected(port_wide, before),
        },
    };
    made.add(key, wanted);
}

/// Parts of the listener for all services of a port.
struct PortWide<'a> {
    connections: &'a ConnectionRules<'a>,
    http: Option<&'a Arc<HttpHosts>>,
    provenance: &'a [Provenance],
}

/// Adds the listeners for single addresses; the address alone decides the service, so no bytes have to be inspected.
fn add_exact(
    made: &mut Made<'_>,
    sorted: &Sorted,
    of_port: &PortWide<'_>,
    clusters: &mut Clusters<'_>,
) {
    let PortWide {
        connections,
        http,
        provenance,
    } = *of_port;
    for (address, service, port) in &sorted.exact {
        let dialed = SocketAddr::new(*address, port.number);
        let key = ListenerKey::for_captured(Intake::CapturedOutbound, dialed);
        if made.has(&key) {
            continue;
        }
        let before = made.before(&key);
        let to = [IpNet::from(*address)];
        let compiled = connections.of_service(service, port.number, &to, clusters);
        let routes = assemble(compiled, None, before.and_then(opaque_of));
        let service = match port.carries {
            // requests are routed by host, as on the port as a whole
            Carries::Detect => detected(
                Detected {
                    http: http.cloned(),
                    opaque: routes,
                    ..Detected::default()
                },
                before,
            ),
            _ => Service::Opaque(routes),
        };
        let wanted = Wanted {
            direction: Direction::Outbound,
            protocols: vec![name_of(port.carries)],
            provenance: provenance.to_vec(),
            skipped: Vec::new(),
            service,
        };
        made.add(key, wanted);
    }
}

/// Returns the rules for TLS connections to a port, and for connections that are not HTTP.
fn bytes(
    sorted: &Sorted,
    connections: &ConnectionRules<'_>,
    unknown: &Unknown<'_>,
    before: Option<&Service>,
    clusters: &mut Clusters<'_>,
) -> (TlsBytes, Arc<OpaqueRoutes>) {
    let port = connections.key.address.port();
    // connections to TLS services that are not TLS go to the service that was dialed
    let addressed = sorted.tls.iter().filter(|(_, _, nets)| !nets.is_empty());
    let mut bytes: Vec<Compiled> = Vec::new();
    for (service, port, nets) in sorted.nets.iter().chain(addressed) {
        bytes.extend(connections.of_service(service, *port, nets, clusters));
    }
    let mut names = connections.by_name(&sorted.tls, clusters);
    let has_names = !names.is_empty();
    for (service, port) in &sorted.anywhere {
        bytes.extend(connections.of_service(service, *port, &[], clusters));
        if has_names {
            names.extend(connections.of_service(service, *port, &[], clusters));
        }
    }
    bytes.push(rest(unknown, port, clusters));
    let tls = match has_names {
        false => TlsBytes::Opaque,
        true => {
            names.push(rest(unknown, port, clusters));
            TlsBytes::ByName(assemble(names, None, before.and_then(tls_of)))
        }
    };
    (tls, assemble(bytes, None, before.and_then(opaque_of)))
}

/// Adds the listener for connections to ports that no service has.
fn add_rest(made: &mut Made<'_>, unknown: &Unknown<'_>, clusters: &mut Clusters<'_>) {
    if made.inputs.identity.sockets.outbound.is_none() {
        return;
    }
    let key = captured_port(Intake::CapturedOutbound, 0);
    let before = made.before(&key);
    let routes = assemble(
        vec![rest(unknown, 0, clusters)],
        None,
        before.and_then(opaque_of),
    );
    let wanted = Wanted {
        direction: Direction::Outbound,
        protocols: vec!["TCP"],
        provenance: made.at(0),
        skipped: Vec::new(),
        service: Service::Opaque(routes),
    };
    made.add(key, wanted);
}

/// Returns the service with protocol detection; that of the previous snapshot if it is the same.
pub(super) fn detected(now: Detected, before: Option<&Service>) -> Service {
    match before {
        Some(Service::Detected(before)) if before.is_same(&now) => {
            Service::Detected(Arc::clone(before))
        }
        _ => Service::Detected(Arc::new(now)),
    }
}

pub(super) fn http_of(before: &Service) -> Option<&Arc<HttpHosts>> {
    match before {
        Service::Detected(before) => before.http.as_ref(),
        Service::Tls(before) => http_hosts(&before.chains.first()?.handling),
        _ => None,
    }
}

pub(super) fn opaque_of(before: &Service) -> Option<&Arc<OpaqueRoutes>> {
    match before {
        Service::Detected(before) => Some(&before.opaque),
        Service::Opaque(before) => Some(before),
        Service::Tls(before) => opaque_routes(&before.chains.first()?.handling),
        _ => None,
    }
}

fn tls_of(before: &Service) -> Option<&Arc<OpaqueRoutes>> {
    match before {
        Service::Detected(before) => match &before.tls {
            TlsBytes::ByName(routes) => Some(routes),
            _ => None,
        },
        _ => None,
    }
}

fn protocols(services: &[(Arc<Host>, Port)]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for (_, port) in services {
        let name = name_of(port.carries);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the protocol name of a port for admin pages.
pub(super) fn name_of(carries: Carries) -> &'static str {
    match carries {
        Carries::Bytes => "TCP",
        Carries::Detect => "detected",
        Carries::GrpcWeb => "GRPC-WEB",
        Carries::Http => "HTTP",
        Carries::Tls => "TLS",
    }
}
