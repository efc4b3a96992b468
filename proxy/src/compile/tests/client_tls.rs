//! TLS settings of a DestinationRule for a port and a subset.

use crate::compile::tests::world::World;

const ROUTES: &str = "VirtualService default/a {hosts: [a.com], gateways: [gw], http: [\
    {match: [{uri: {prefix: /v1}}], route: [{destination: {host: s, subset: v1}}]}, \
    {match: [{uri: {prefix: /v2}}], route: [{destination: {host: s, subset: v2}}]}, \
    {route: [{destination: {host: s}}]}]}";

/// Returns the TLS settings of service `s` as pages print them.
fn tls(policy: &str, subset: &str) -> String {
    let rule = format!("DestinationRule default/s {{host: s, {policy}}}");
    let world = World::of(&[ROUTES, &rule]);
    let name = format!("outbound|80|{subset}|s.default.svc.cluster.local");
    let id = world.registry.cluster(&name).id;
    let cluster = world.snapshot.cluster(id).unwrap();
    let shown = cluster.pool.tls.as_ref().map(ToString::to_string);
    let shown = shown.unwrap_or_else(|| "plain".to_owned());
    shown.split("; connections fail").next().unwrap().to_owned()
}

#[test]
fn every_tls_field_is_compiled() {
    for (settings, expected) in [
        ("{mode: DISABLE}", "plain"),
        (
            "{mode: SIMPLE}",
            "SIMPLE, sni is the host, verifies by the operating system's CAs, for the host",
        ),
        (
            "{mode: SIMPLE, caCertificates: system}",
            "SIMPLE, sni is the host, verifies by the operating system's CAs, for the host",
        ),
        (
            "{mode: SIMPLE, caCertificates: /ca.pem}",
            "SIMPLE, sni is the host, verifies by file /ca.pem, for the host",
        ),
        (
            "{mode: SIMPLE, caCertificates: /ca.pem, sni: x.com}",
            "SIMPLE, sni x.com, verifies by file /ca.pem, for any name",
        ),
        (
            "{mode: SIMPLE, caCertificates: /ca.pem, subjectAltNames: [x, b]}",
            "SIMPLE, sni is the host, verifies by file /ca.pem, for x or b",
        ),
        (
            "{mode: SIMPLE, insecureSkipVerify: true}",
            "SIMPLE, sni is the host, verifies nothing",
        ),
        (
            "{mode: SIMPLE, credentialName: c}",
            "SIMPLE, sni is the host, verifies by secret istio-system/c, for the host",
        ),
        (
            "{mode: MUTUAL, clientCertificate: /c.pem, privateKey: /k.pem}",
            "MUTUAL, sni is the host, shows file /c.pem, verifies by the operating system's CAs, for the host",
        ),
        (
            "{mode: MUTUAL, credentialName: c, insecureSkipVerify: true}",
            "MUTUAL, sni is the host, shows secret istio-system/c, verifies nothing",
        ),
        // what a rule says of certificates does not count in the mesh
        (
            "{mode: ISTIO_MUTUAL, caCertificates: /ca.pem}",
            "ISTIO_MUTUAL, sni outbound_.80_._.s.default.svc.cluster.local, shows file /etc/certs/cert-chain.pem, verifies by file /etc/certs/root-cert.pem, for any workload of cluster.local",
        ),
        (
            "{mode: ISTIO_MUTUAL, sni: x, subjectAltNames: [b]}",
            "ISTIO_MUTUAL, sni x, shows file /etc/certs/cert-chain.pem, verifies by file /etc/certs/root-cert.pem, for b",
        ),
    ] {
        let policy = format!("trafficPolicy: {{tls: {settings}}}");
        assert_eq!(tls(&policy, ""), expected, "{settings}");
    }
}

#[test]
fn ports_and_subsets_replace_the_tls_block() {
    const BASE: &str = "tls: {mode: SIMPLE, insecureSkipVerify: true, sni: base}";
    const OWN: &str = "tls: {mode: SIMPLE, insecureSkipVerify: true, sni: own}";
    const OTHER: &str = "loadBalancer: {simple: RANDOM}";
    let at =
        |port: u16, own: &str| format!("portLevelSettings: [{{port: {{number: {port}}}, {own}}}]");
    let subset = |own: &str| {
        format!("subsets: [{{name: v1, labels: {{version: v1}}, trafficPolicy: {{{own}}}}}]")
    };
    let (base, own) = (
        "SIMPLE, sni base, verifies nothing",
        "SIMPLE, sni own, verifies nothing",
    );
    for (policy, of, expected) in [
        (format!("trafficPolicy: {{{BASE}}}"), "", base),
        (
            format!("trafficPolicy: {{{BASE}, {}}}", at(80, OTHER)),
            "",
            "plain",
        ),
        (
            format!("trafficPolicy: {{{BASE}, {}}}", at(80, OWN)),
            "",
            own,
        ),
        (
            format!("trafficPolicy: {{{BASE}, {}}}", at(81, OWN)),
            "",
            base,
        ),
        (
            format!("trafficPolicy: {{{BASE}}}, {}", subset(OTHER)),
            "v1",
            base,
        ),
        (
            format!("trafficPolicy: {{{BASE}}}, {}", subset(OWN)),
            "v1",
            own,
        ),
        (
            format!(
                "trafficPolicy: {{{BASE}}}, {}",
                subset("tls: {mode: DISABLE}")
            ),
            "v1",
            "plain",
        ),
        (
            format!("trafficPolicy: {{{BASE}}}, {}", subset(&at(80, OTHER))),
            "v1",
            "plain",
        ),
    ] {
        assert_eq!(tls(&policy, of), expected, "{policy}");
    }
}
