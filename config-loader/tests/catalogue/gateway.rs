//! Rows 187 to 221: Gateways and their servers.

use super::{Table, document};

pub(super) fn tables() -> Vec<Table> {
    let table = |around, cases| Table {
        around,
        path: "",
        with_references: false,
        cases,
    };
    vec![
        table(named as fn(&str) -> String, NAMED),
        table(gateway, WHOLE),
        table(port, PORTS),
        table(serving, SERVERS),
        table(hosts, HOSTS),
        table(tls, TLS),
    ]
}

/// Returns a Gateway with this spec.
fn gateway(spec: &str) -> String {
    document("Gateway", "own", spec)
}

/// Returns a Gateway with this name.
fn named(name: &str) -> String {
    let server = "{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}";
    format!(
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata:\n  name: {name}\nspec: {{servers: [{server}]}}\n"
    )
}

/// Returns a server with these fields after its hosts. A comment on the first line is about the server as a whole.
fn serving(fields: &str) -> String {
    let (found, fields) = super::first_comment(fields);
    let fields = super::indent(fields, "  ");
    gateway(&format!("servers:\n- hosts: [a.com] {found}\n{fields}"))
}

/// Returns a server with these fields of its port. A comment on the first line is about the port as a whole.
fn port(fields: &str) -> String {
    let (found, fields) = super::first_comment(fields);
    let fields = super::indent(fields, "  ");
    serving(&format!("port: {found}\n{fields}"))
}

/// Returns a server with these hosts.
fn hosts(entries: &str) -> String {
    gateway(&format!(
        "servers:\n- port: {{number: 80, name: http, protocol: HTTP}}\n  hosts:\n{}",
        super::indent(entries, "  ")
    ))
}

/// Returns an HTTPS server with these settings.
fn tls(settings: &str) -> String {
    let settings = super::indent(settings, "  ");
    serving(&format!(
        "port: {{number: 443, name: https, protocol: HTTPS}}\ntls:\n{settings}"
    ))
}

const NAMED: &[super::Case] = &[(&[187], "a.b # E GW187 a.b", "a-b")];

const WHOLE: &[super::Case] = &[
    (
        &[188],
        "selector: {app: a}\nservers: [] # E GW188 servers",
        "servers: [{port: {number: 80, name: a, protocol: HTTP}, hosts: ['*']}]",
    ),
    (
        &[188, 18],
        "servers:\n- port: {number: 80, name: a, protocol: HTTP}\n  hosts: ['*']\n- null # E CM018 null",
        "servers:\n- port: {number: 80, name: a, protocol: HTTP}\n  hosts: ['*']",
    ),
    (
        &[191],
        "
servers:
- hosts: [a.com]
  port: {number: 80, name: http, protocol: HTTP}
- hosts: [a.com]
  port:
    number: 81
    name: http # E GW191 http
    protocol: HTTP",
        "
servers:
- hosts: [a.com]
  port: {number: 80, name: http, protocol: HTTP}
- hosts: [a.com]
  port:
    number: 81
    name: http-81
    protocol: HTTP",
    ),
    (
        &[198],
        "servers:\n- name: a # E GW198 name: a\n  port: {number: 80, name: a, protocol: HTTP}",
        "servers:\n- name: a\n  port: {number: 80, name: a, protocol: HTTP}\n  hosts: [a.com]",
    ),
];

const PORTS: &[super::Case] = &[
    (
        &[190],
        "# E GW190 port\nnumber: 80\nprotocol: HTTP",
        "number: 80\nprotocol: HTTP\nname: http",
    ),
    (
        &[190],
        "number: 80\nprotocol: HTTP\nname: '' # E GW190 ''",
        "number: 80\nprotocol: HTTP\nname: a",
    ),
    (
        &[192],
        "number: 80\nname: a\nprotocol: HTPT # E GW192 HTPT",
        "number: 80\nname: a\nprotocol: http",
    ),
    (
        &[192],
        "# E GW192 port\nnumber: 80\nname: a",
        "number: 80\nname: a\nprotocol: GRPC-WEB",
    ),
    (
        &[193],
        "name: a\nprotocol: TCP\nnumber: 0 # E GW193 0",
        "name: a\nprotocol: TCP\nnumber: 1",
    ),
    (
        &[193, 16],
        "name: a\nprotocol: TCP\nnumber: 65536 # E CM016 65536",
        "name: a\nprotocol: TCP\nnumber: 65535",
    ),
    (
        &[193],
        "# E GW193 port\nname: a\nprotocol: TCP",
        "name: a\nprotocol: TCP\nnumber: 80",
    ),
    (
        &[194],
        "number: 80\nname: a\nprotocol: HTTP\ntargetPort: 8080 # E GW194 8080",
        "number: 80\nname: a\nprotocol: HTTP",
    ),
];

const SERVERS: &[super::Case] = &[
    (
        &[189],
        "# E GW189 hosts: [a.com]\nname: a",
        "name: a\nport: {number: 80, name: a, protocol: HTTP}",
    ),
    (
        &[195],
        "port: {number: 80, name: a, protocol: HTTP}\nbind: localhost # E GW195 localhost",
        "port: {number: 80, name: a, protocol: HTTP}\nbind: 127.0.0.1",
    ),
    (
        &[196],
        "port: {number: 0, name: a, protocol: HTTP}\nbind: unix://run/a.sock # E GW196 unix://run/a.sock",
        "port: {number: 0, name: a, protocol: HTTP}\nbind: unix:///run/a.sock",
    ),
    (
        &[196],
        "port: {number: 0, name: a, protocol: HTTP}\nbind: unix:///run/ # E GW196 unix:///run/",
        "port: {number: 0, name: a, protocol: HTTP}\nbind: unix://@run",
    ),
    (
        &[197],
        "bind: unix:///run/a.sock\nport:\n  number: 80 # E GW197 80\n  name: a\n  protocol: HTTP",
        "bind: unix:///run/a.sock\nport:\n  number: 0\n  name: a\n  protocol: HTTP",
    ),
    (
        &[204],
        "port:\n  number: 443\n  name: a\n  protocol: HTTPS # E GW204 HTTPS",
        "port:\n  number: 443\n  name: a\n  protocol: HTTP",
    ),
    (
        &[204],
        "port:\n  number: 443\n  name: a\n  protocol: TLS # E GW204 TLS",
        "port:\n  number: 443\n  name: a\n  protocol: TLS\ntls: {mode: PASSTHROUGH}",
    ),
    (
        &[205],
        "port: {number: 80, name: a, protocol: HTTP}\ntls:\n  httpsRedirect: true\n  mode: SIMPLE # E GW205 SIMPLE\n  \
         credentialName: a # W GW306 a",
        "port: {number: 80, name: a, protocol: HTTP}\ntls:\n  httpsRedirect: true",
    ),
    (
        &[206],
        "port: {number: 80, name: a, protocol: TCP}\ntls: {mode: PASSTHROUGH} # E GW206 tls",
        "port: {number: 80, name: a, protocol: TCP}",
    ),
    (
        &[207],
        "port: {number: 443, name: a, protocol: HTTPS}\ntls:\n  mode: PASSTHROUGH\n  httpsRedirect: true # W GW207 true",
        "port: {number: 443, name: a, protocol: HTTPS}\ntls:\n  mode: PASSTHROUGH\n  httpsRedirect: false",
    ),
];

const HOSTS: &[super::Case] = &[
    (
        &[199],
        "- a.com\n- ns/ # E GW199 ns/\n- /b.com # E GW199 /b.com",
        "- a.com\n- ns/b.com",
    ),
    (
        &[200],
        "- n_s/a.com # E GW200 n_s/a.com",
        "- ./a.com\n- '*/b.com'\n- n-s/c.com",
    ),
    (
        &[201],
        "- a.com\n- reviews # E GW201 reviews",
        "- a.com\n- '*'",
    ),
    (
        &[202],
        "- a_b.com # E GW202 a_b.com\n- a.com:80 # E GW202 a.com:80",
        "- a-b.com\n- 10.0.0.1",
    ),
    (&[202], "- a.*.com # E GW202 a.*.com", "- '*.a.com'"),
    (&[203], "- '*foo.com' # E GW203 '*foo.com'", "- '*.foo.com'"),
    (&[203], "- ns/*-foo.com # E GW203 ns/*-foo.com", "- ns/*"),
];

const TLS: &[super::Case] = &[
    (
        &[208, 209, 210],
        "mode: ISTIO_MUTUAL\nserverCertificate: a # E GW208 a\nprivateKey: b # E GW209 b\ncaCertificates: c # E GW210 c",
        "mode: ISTIO_MUTUAL",
    ),
    (
        &[211],
        "mode: ISTIO_MUTUAL\ncredentialName: a # E GW211 a",
        "mode: MUTUAL\ncredentialName: a",
    ),
    (
        &[211],
        "mode: ISTIO_MUTUAL\ncredentialNames: [a] # E GW211 credentialNames\ntlsCertificates: # E GW211 tlsCertificates\n\
         - {serverCertificate: a, privateKey: b}",
        "mode: ISTIO_MUTUAL\nminProtocolVersion: TLSV1_3",
    ),
    (
        &[212],
        "mode: SIMPLE\ncredentialName: a\nserverCertificate: b # E GW212 b\nprivateKey: c",
        "mode: SIMPLE\nserverCertificate: b\nprivateKey: c",
    ),
    (
        &[212],
        "mode: SIMPLE\ncredentialName: a\ncredentialNames: [b] # E GW212 credentialNames",
        "mode: SIMPLE\ncredentialNames: [b]",
    ),
    (
        &[213],
        "minProtocolVersion: TLSV1_2\nmode: SIMPLE # E GW213 SIMPLE",
        "minProtocolVersion: TLSV1_2\nmode: SIMPLE\ncredentialName: a",
    ),
    (
        &[213],
        "mode: OPTIONAL_MUTUAL # E GW213 OPTIONAL_MUTUAL # E GW215 OPTIONAL_MUTUAL",
        "mode: OPTIONAL_MUTUAL\ncredentialName: a",
    ),
    (
        &[213],
        "mode: SIMPLE\ntlsCertificates:\n- {serverCertificate: a, privateKey: b}\n- privateKey: c # E GW213 privateKey: c",
        "mode: SIMPLE\ntlsCertificates:\n- {serverCertificate: a, privateKey: b}\n- {serverCertificate: c, privateKey: d}",
    ),
    (
        &[214],
        "serverCertificate: a\nmode: SIMPLE # E GW214 SIMPLE",
        "serverCertificate: a\nmode: SIMPLE\nprivateKey: b",
    ),
    (
        &[214],
        "mode: SIMPLE\ntlsCertificates:\n- serverCertificate: a # E GW214 serverCertificate: a",
        "mode: SIMPLE\ntlsCertificates:\n- serverCertificate: a\n  privateKey: b",
    ),
    (
        &[215],
        "serverCertificate: a\nprivateKey: b\nmode: MUTUAL # E GW215 MUTUAL",
        "serverCertificate: a\nprivateKey: b\nmode: MUTUAL\ncaCertificates: c",
    ),
    (
        &[215],
        "serverCertificate: a\nprivateKey: b\nmode: OPTIONAL_MUTUAL # E GW215 OPTIONAL_MUTUAL",
        "credentialName: a\nmode: OPTIONAL_MUTUAL",
    ),
    (
        &[216],
        "mode: MUTUAL\ncredentialName: a\ncaCrl: b # W GW216 b",
        "mode: MUTUAL\nserverCertificate: a\nprivateKey: b\ncaCertificates: c\ncaCrl: d",
    ),
    (
        &[217],
        "mode: SIMPLE\nserverCertificate: a\nprivateKey: b\ncaCrl: c # E GW217 c",
        "mode: OPTIONAL_MUTUAL\nserverCertificate: a\nprivateKey: b\ncaCertificates: c\ncaCrl: d",
    ),
    (
        &[218],
        "
mode: SIMPLE
credentialName: a
cipherSuites:
- ECDHE-RSA-AES128-GCM-SHA256
- NONE-SUCH # W GW218 NONE-SUCH
- ECDHE-RSA-AES128-GCM-SHA256 # W GW218 ECDHE-RSA-AES128-GCM-SHA256
- AES128-SHA # W GW218 AES128-SHA",
        "
mode: SIMPLE
credentialName: a
cipherSuites:
- ECDHE-RSA-AES128-GCM-SHA256
- ECDHE-ECDSA-CHACHA20-POLY1305",
    ),
    (
        &[219],
        "mode: SIMPLE\ncredentialName: a\nminProtocolVersion: TLSV1_1 # W GW219 TLSV1_1",
        "mode: SIMPLE\ncredentialName: a\nminProtocolVersion: TLSV1_2",
    ),
    (
        &[220],
        "mode: PASSTHROUGH\ncredentialName: a # W GW220 a",
        "mode: PASSTHROUGH",
    ),
    (
        &[220],
        "mode: AUTO_PASSTHROUGH\nserverCertificate: a # W GW220 a\nprivateKey: b # W GW220 b\ncaCertificates: c # W GW220 c",
        "mode: AUTO_PASSTHROUGH",
    ),
    (
        &[221],
        "mode: SIMPLE\ncredentialNames: [a, b, c] # W GW221 credentialNames",
        "mode: SIMPLE\ncredentialNames: [a, b]",
    ),
    (
        &[221],
        "
mode: SIMPLE
tlsCertificates: # W GW221 tlsCertificates
- {serverCertificate: a, privateKey: b}
- {serverCertificate: c, privateKey: d}
- {serverCertificate: e, privateKey: f}",
        "
mode: SIMPLE
tlsCertificates:
- {serverCertificate: a, privateKey: b}
- {serverCertificate: c, privateKey: d}",
    ),
];
