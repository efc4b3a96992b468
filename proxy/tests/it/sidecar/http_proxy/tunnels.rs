//! CONNECT tunnels combined with other configuration: rules by SNI, limits, the egress proxy, and the drain.

use super::*;

/// Returns a ServiceEntry for `NAME.test` on a port, served at `endpoint`.
fn entry(name: &str, (protocol, number): (&str, u16), endpoint: SocketAddr) -> String {
    let (ip, port) = (endpoint.ip(), endpoint.port());
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: {name}}}\nspec:\n  hosts: [{name}.test]\n  \
         resolution: STATIC\n  ports: [{{number: {number}, name: own, protocol: {protocol}}}]\n  endpoints: [{{address: {ip}, \
         ports: {{own: {port}}}}}]\n"
    )
}

#[test]
fn host_of_a_tunnel_counts_as_the_server_name_of_tls_rules() {
    let (blue, green) = (Greeter::start(), Greeter::start());
    let rule = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: r}\nspec:\n  hosts: [blue.test]\n  \
                tls:\n  - match: [{port: 443, sniHosts: [blue.test]}]\n    route: [{destination: {host: green.test, port: \
                {number: 443}}}]\n";
    let proxy = HttpProxy::start(
        &[],
        [
            entry("blue", ("TLS", 443), blue.address),
            entry("green", ("TLS", 443), green.address),
            rule.to_owned(),
        ],
    );
    for host in ["blue.test", "green.test"] {
        let authority = format!("{host}:443");
        let (mut tunnel, reply) = proxy.connect(&authority);
        assert_eq!(reply.status, 200, "{host}");
        assert_eq!(tunnel.read(9), b"greeting\n");
        tunnel.finish();
        assert!(tunnel.is_closed(), "{host}");
        let cluster = &proxy.logged(&authority)["upstream_cluster"];
        assert_eq!(cluster, "outbound|443||green.test", "{host}");
    }
}

#[test]
fn tunnels_count_against_the_maximum_of_connections() {
    let db = Greeter::start();
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: db}\nspec:\n  host: db\n  \
                trafficPolicy: {connectionPool: {tcp: {maxConnections: 1}}}\n";
    let service = service("db", "10.96.0.1", ("tcp-db", 3306), db.address);
    let proxy = HttpProxy::start(&[], [service, rule.to_owned()]);
    let (mut first, reply) = proxy.connect("db:3306");
    assert_eq!(reply.status, 200);
    assert_eq!(first.read(9), b"greeting\n");
    let (_, refused) = proxy.connect("db.default:3306");
    assert_eq!(refused.status, 503);
    assert!(refused.has("x-envoy-overloaded: true"));
    assert_eq!(proxy.logged("db.default:3306")["response_flags"], "UO");
    first.finish();
    assert!(first.is_closed());
    // the place is free once the connection to the endpoint is closed
    eventually("the next tunnel is opened", || {
        proxy.connect("db:3306").1.status == 200
    });
}

#[test]
fn tunnels_to_unknown_hosts_go_through_the_egress_proxy() {
    let gateway = Greeter::start();
    let sidecar = "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: s}\nspec:\n  outboundTrafficPolicy: \
                   {mode: ALLOW_ANY, egressProxy: {host: gateway.test, port: {number: 8443}}}\n";
    let resources = [
        entry("gateway", ("TCP", 8443), gateway.address),
        sidecar.to_owned(),
    ];
    let proxy = HttpProxy::start(&[], resources);
    // neither name nor address is looked at
    for authority in ["outside.invalid:9000", "192.0.2.77:9000"] {
        let (mut tunnel, reply) = proxy.connect(authority);
        assert_eq!(reply.status, 200, "{authority}");
        assert_eq!(tunnel.read(9), b"greeting\n");
        tunnel.finish();
        assert!(tunnel.is_closed(), "{authority}");
        let cluster = &proxy.logged(authority)["upstream_cluster"];
        assert_eq!(cluster, "outbound|8443||gateway.test", "{authority}");
    }
}

#[test]
fn tunnels_are_served_and_opened_while_the_sidecar_drains() {
    let db = Greeter::start();
    let service = service("db", "10.96.0.1", ("tcp-db", 3306), db.address);
    let drain = [
        "--termination-drain",
        "1h",
        "--termination-drain-minimum",
        "0s",
    ];
    let mut proxy = HttpProxy::start(&drain, [service]);
    let (mut open, reply) = proxy.connect("db:3306");
    assert_eq!(reply.status, 200);
    assert_eq!(open.read(9), b"greeting\n");
    proxy.proxy.signal("TERM");
    eventually("readiness fails", || !proxy.proxy.is_ready());
    open.send("query\n");
    assert_eq!(open.read(6), b"query\n");
    let (mut new, reply) = proxy.connect("db:3306");
    assert_eq!(reply.status, 200);
    assert_eq!(new.read(9), b"greeting\n");
    assert!(proxy.proxy.ended().is_none());
    for mut tunnel in [open, new] {
        tunnel.finish();
        assert!(tunnel.is_closed());
    }
    assert!(proxy.proxy.wait().success());
}
