use crate::resource::istio::{
    Bind, Certificates, NamespaceFilter, Protocol, ServerTlsMode, TlsVersion,
};
use crate::validate::istio::testing::{check, document, load};

fn gateway(cases: &[(&str, &[&str])]) {
    check("Gateway", cases);
}

/// Checks cases of one server with valid hosts.
fn server(cases: &[(&str, &[&str])]) {
    for (fields, expected) in cases {
        gateway(&[(
            &format!("servers:\n- {{hosts: ['*'], {fields}}}"),
            *expected,
        )]);
    }
}

/// Checks cases of the TLS settings of one HTTPS server.
fn tls(cases: &[(&str, &[&str])]) {
    for (settings, expected) in cases {
        let fields =
            format!("port: {{number: 443, name: https, protocol: HTTPS}}, tls: {{{settings}}}");
        server(&[(fields.as_str(), *expected)]);
    }
}

#[test]
fn a_gateway_needs_servers() {
    gateway(&[
        ("selector: {app: a}", &["E GW188 4"]),
        ("servers: []", &["E GW188 5"]),
        ("servers: [null]", &["E CM018 5"]),
    ]);
    let yaml = document(
        "Gateway",
        "servers: [{hosts: ['*'], port: {number: 80, name: a, protocol: HTTP}}]",
    );
    let (_, found) = load(&yaml.replace("name: own", "name: own.x"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].code.0, "GW187");
    let (set, found) = load(&yaml);
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(set.gateways.len(), 1);
}

#[test]
fn ports_need_number_name_and_protocol() {
    server(&[
        ("port: {number: 80, name: http, protocol: HTTP}", &[]),
        ("port: {number: 80, name: http, protocol: grpc-web}", &[]),
        ("name: a", &["E GW189 6"]),
        ("port: {number: 80, protocol: HTTP}", &["E GW190 6"]),
        (
            "port: {number: 80, name: http, protocol: HTPT}",
            &["E GW192 6"],
        ),
        ("port: {number: 80, name: http}", &["E GW192 6"]),
        ("port: {name: http, protocol: HTTP}", &["E GW193 6"]),
        (
            "port: {number: 0, name: http, protocol: HTTP}",
            &["E GW193 6"],
        ),
        (
            "port: {number: 65536, name: http, protocol: HTTP}",
            &["E CM016 6"],
        ),
        (
            "port: {number: 80, name: http, protocol: HTTP, targetPort: 8080}",
            &["E GW194 6"],
        ),
        (
            "port: {number: 80, name: http, protocol: HTTP}, defaultEndpoint: '127.0.0.1:1'",
            &["W GW301 6"],
        ),
    ]);
    let two = |name: &str| {
        format!(
            "servers:\n- {{hosts: [a.com], port: {{number: 80, name: a, protocol: HTTP}}}}\n- {{hosts: [a.com], port: {{number: 81, name: {name}, protocol: HTTP}}}}"
        )
    };
    gateway(&[(&two("a"), &["E GW191 7"]), (&two("b"), &[])]);
}

#[test]
fn bind_must_be_an_address_or_a_socket_path() {
    let on = |bind: &str, number: u32| {
        format!("bind: '{bind}', port: {{number: {number}, name: a, protocol: HTTP}}")
    };
    server(&[
        (&on("10.0.0.1", 80), &[]),
        (&on("::", 80), &[]),
        (&on("localhost", 80), &["E GW195 6"]),
        (&on("unix:///run/a.sock", 0), &[]),
        (&on("unix://@a", 0), &[]),
        (&on("unix://run/a.sock", 0), &["E GW196 6"]),
        (&on("unix:///run/", 0), &["E GW196 6"]),
        (&on("unix:///run/a.sock", 80), &["E GW197 6"]),
    ]);
}

#[test]
fn hosts_must_be_qualified() {
    let port = "port: {number: 80, name: a, protocol: HTTP}";
    for (hosts, code) in [
        (
            "['*', a.com, '*.a.com', ns/b.com, ./c.com, '*/d.com', 10.0.0.1]",
            None,
        ),
        ("[]", Some("GW198")),
        ("[ns/]", Some("GW199")),
        ("[/a.com]", Some("GW199")),
        ("[n_s/a.com]", Some("GW200")),
        ("[reviews]", Some("GW201")),
        ("[a_b.com]", Some("GW202")),
        ("['a.com:80']", Some("GW202")),
        ("['a.*.com']", Some("GW202")),
        ("['123']", Some("GW201")),
        ("[a.123]", Some("GW202")),
        ("['::1']", Some("GW202")),
        ("['ns/::1']", Some("GW202")),
        ("['::ffff:10.0.0.1']", None),
        ("['*foo.com']", Some("GW203")),
    ] {
        let expected: Vec<String> = code.map(|code| format!("E {code} 6")).into_iter().collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        gateway(&[(
            &format!("servers:\n- {{hosts: {hosts}, {port}}}"),
            &expected,
        )]);
    }
    gateway(&[(&format!("servers:\n- {{{port}}}"), &["E GW198 6"])]);
}

#[test]
fn tls_is_required_or_forbidden_by_protocol() {
    let on = |protocol: &str, tls: &str| {
        format!("port: {{number: 443, name: a, protocol: {protocol}}}{tls}")
    };
    server(&[
        (&on("HTTPS", ""), &["E GW204 6"]),
        (&on("TLS", ""), &["E GW204 6"]),
        (&on("TLS", ", tls: {mode: PASSTHROUGH}"), &[]),
        (&on("HTTP", ", tls: {httpsRedirect: true}"), &[]),
        (
            &on("HTTP", ", tls: {mode: SIMPLE, credentialName: a}"),
            &["E GW205 6", "W GW306 6"],
        ),
        (
            &on("HTTP", ", tls: {httpsRedirect: true, credentialName: a}"),
            &["W GW306 6"],
        ),
        (&on("HTTP", ", tls: {mode: PASSTHROUGH}"), &["W GW306 6"]),
        (
            &on("HTTP", ", tls: {serverCertificate: a, privateKey: b}"),
            &["E GW205 6", "E GW205 6"],
        ),
        (&on("TCP", ", tls: {mode: PASSTHROUGH}"), &["E GW206 6"]),
        (&on("TCP", ""), &[]),
        (
            &on(
                "HTTPS",
                ", tls: {httpsRedirect: true, mode: SIMPLE, credentialName: a}",
            ),
            &["W GW207 6"],
        ),
    ]);
}

#[test]
fn certificates_must_fit_the_tls_mode() {
    tls(&[
        ("mode: ISTIO_MUTUAL", &[]),
        ("mode: ISTIO_MUTUAL, serverCertificate: a", &["E GW208 6"]),
        ("mode: ISTIO_MUTUAL, privateKey: a", &["E GW209 6"]),
        ("mode: ISTIO_MUTUAL, caCertificates: a", &["E GW210 6"]),
        ("mode: ISTIO_MUTUAL, credentialName: a", &["E GW211 6"]),
        ("mode: ISTIO_MUTUAL, credentialNames: [a]", &["E GW211 6"]),
        ("mode: SIMPLE, credentialName: a", &[]),
        ("mode: SIMPLE, credentialNames: [a, b]", &[]),
        ("mode: SIMPLE, serverCertificate: a, privateKey: b", &[]),
        (
            "mode: SIMPLE, tlsCertificates: [{serverCertificate: a, privateKey: b}]",
            &[],
        ),
        (
            "mode: SIMPLE, credentialName: a, serverCertificate: a, privateKey: b",
            &["E GW212 6"],
        ),
        (
            "mode: SIMPLE, credentialName: a, credentialNames: [b]",
            &["E GW212 6"],
        ),
        (
            "mode: SIMPLE, credentialName: a, serverCertificate: b",
            &["W GW305 6"],
        ),
        (
            "mode: MUTUAL, credentialNames: [a], privateKey: b",
            &["W GW305 6"],
        ),
        (
            "mode: SIMPLE, serverCertificate: c, tlsCertificates: [{serverCertificate: a, privateKey: b}]",
            &["W GW305 6"],
        ),
        (
            "mode: SIMPLE, serverCertificate: c, credentialName: a, credentialNames: [b]",
            &["W GW305 6", "E GW212 6"],
        ),
        ("mode: SIMPLE", &["E GW213 6"]),
        ("mode: SIMPLE, privateKey: a", &["E GW213 6"]),
        (
            "mode: SIMPLE, tlsCertificates: [{privateKey: b}]",
            &["E GW213 6"],
        ),
        ("mode: SIMPLE, serverCertificate: a", &["E GW214 6"]),
        (
            "mode: SIMPLE, tlsCertificates: [{serverCertificate: b}]",
            &["E GW214 6"],
        ),
        ("mode: MUTUAL, credentialName: a", &[]),
        (
            "mode: MUTUAL, serverCertificate: a, privateKey: b",
            &["E GW215 6"],
        ),
        (
            "mode: OPTIONAL_MUTUAL, serverCertificate: a, privateKey: b",
            &["E GW215 6"],
        ),
        (
            "mode: MUTUAL, serverCertificate: a, privateKey: b, caCertificates: c, caCrl: d",
            &[],
        ),
        ("mode: MUTUAL, credentialName: a, caCrl: b", &["W GW216 6"]),
        (
            "mode: SIMPLE, credentialNames: [a], caCrl: b",
            &["W GW216 6"],
        ),
        (
            "mode: SIMPLE, serverCertificate: a, privateKey: b, caCrl: c",
            &["E GW217 6"],
        ),
        ("mode: PASSTHROUGH, credentialName: a", &["W GW220 6"]),
        (
            "mode: AUTO_PASSTHROUGH, serverCertificate: a",
            &["W GW220 6"],
        ),
        ("mode: SIMPLE, credentialNames: [a, b, c]", &["W GW221 6"]),
        ("mode: SOMEHOW", &["E CM017 6"]),
    ]);
}

#[test]
fn unknown_ciphers_versions_and_hashes_are_rejected() {
    let with = |settings: &str| format!("mode: SIMPLE, credentialName: a, {settings}");
    let hash = "ab:".repeat(31) + "ab";
    tls(&[
        (&with("cipherSuites: [ECDHE-RSA-AES128-GCM-SHA256]"), &[]),
        (&with("cipherSuites: [NONE-SUCH]"), &["W GW218 6"]),
        (&with("cipherSuites: [AES128-SHA]"), &["W GW218 6"]),
        (
            &with("cipherSuites: [ECDHE-RSA-AES128-GCM-SHA256, ECDHE-RSA-AES128-GCM-SHA256]"),
            &["W GW218 6"],
        ),
        (
            &with("minProtocolVersion: TLSV1_2, maxProtocolVersion: TLSV1_3"),
            &[],
        ),
        (&with("minProtocolVersion: TLSV1_0"), &["W GW219 6"]),
        (
            &with("minProtocolVersion: TLSV1_0, cipherSuites: [ECDHE-RSA-AES128-GCM-SHA256]"),
            &["W GW304 6"],
        ),
        (
            &with("minProtocolVersion: TLSV1_3, maxProtocolVersion: TLSV1_2"),
            &["E GW302 6"],
        ),
        (&with("minProtocolVersion: '1.2'"), &["E CM017 6"]),
        (&with(&format!("verifyCertificateHash: ['{hash}']")), &[]),
        (&with("verifyCertificateHash: ['abcd']"), &["E GW303 6"]),
        (
            &with("verifyCertificateSpki: [47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=]"),
            &[],
        ),
        (&with("verifyCertificateSpki: [abcd]"), &["E GW303 6"]),
    ]);
}

#[test]
fn every_field_of_a_gateway_is_read() {
    let (set, found) = load(&document(
        "Gateway",
        "selector: {istio: ingress}
servers:
- name: secure
  bind: 10.0.0.1
  hosts: ['./a.com', b.com]
  port: {number: 443, name: https, protocol: https}
  tls:
    mode: MUTUAL
    serverCertificate: /c
    privateKey: /k
    caCertificates: /ca
    caCrl: /crl
    subjectAltNames: [c.com]
    minProtocolVersion: TLSV1_2
    maxProtocolVersion: TLSV1_3
    ecdhCurves: [X25519]
- hosts: ['*']
  port: {number: 80, name: http, protocol: HTTP2}
  tls: {httpsRedirect: true}",
    ));
    assert!(found.is_empty(), "{found:#?}");
    let gateway = &set.gateways.values().next().expect("it is good").spec;
    assert_eq!(gateway.selector["istio"], "ingress");
    let [secure, plain] = gateway.servers.as_slice() else {
        panic!("two servers");
    };
    assert_eq!(
        (&*secure.name, secure.port, &*secure.port_name),
        ("secure", 443, "https")
    );
    assert_eq!(secure.protocol, Protocol::Https);
    assert_eq!(secure.bind, Bind::Ip([10, 0, 0, 1].into()));
    assert_eq!(
        secure.hosts[0].namespace,
        NamespaceFilter::Only("ns".into())
    );
    assert_eq!(secure.hosts[1].namespace, NamespaceFilter::Any);
    assert_eq!(secure.line.0, 6);
    let tls = secure.tls.as_deref().expect("TLS");
    assert_eq!(tls.mode, ServerTlsMode::Mutual);
    assert!(
        matches!(&tls.certificates, Certificates::Files(files) if &*files[0].private_key == "/k")
    );
    assert_eq!(
        (tls.version_min, tls.version_max),
        (TlsVersion::V1_2, TlsVersion::V1_3)
    );
    assert_eq!(
        (tls.ca_certificates.as_deref(), tls.ca_crl.as_deref()),
        (Some("/ca"), Some("/crl"))
    );
    assert!(plain.https_redirect && plain.tls.is_none());
    assert_eq!(plain.bind, Bind::Default);
}
