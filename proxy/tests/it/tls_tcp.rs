//! TLS that the gateway terminates, with raw TCP inside.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::eventually;
use crate::support::origin::RawOrigin;
use crate::support::pki::Authority;
use crate::support::tls::{Edge, credential, server};

/// Starts a gateway that terminates TLS for `tcp` rules to these destinations.
fn decrypting(origin: &RawOrigin) -> Edge {
    let ca = Authority::new("ca");
    let pair = ca.server(&["db.example"]);
    let at = origin.address;
    let more = [
        credential("cred", &pair),
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: db}\nspec:\n  \
         hosts: [db.example]\n  gateways: [edge]\n  tcp: [{route: [{destination: {host: db.test}}]}]\n"
            .to_owned(),
        format!(
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: db}}\nspec:\n  \
             hosts: [db.test]\n  resolution: STATIC\n  ports: [{{number: 1, name: tcp, protocol: TCP}}]\n  \
             endpoints: [{{address: {}, ports: {{tcp: {}}}}}]\n",
            at.ip(),
            at.port()
        ),
    ];
    Edge::start(ca, &more, |edge| {
        let tls = "{mode: SIMPLE, credentialName: cred}";
        vec![server(edge, "db", "[db.example]", tls).replace("HTTPS", "TLS")]
    })
}

#[tokio::test]
async fn terminated_tls_is_routed_by_tcp_rules() {
    let origin = RawOrigin::start(|_, mut stream| {
        use std::io::{Read, Write};
        // the server speaks first, and last
        stream.write_all(b"220 ready\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        stream.write_all(said.to_uppercase().as_bytes()).unwrap();
    });
    let edge = decrypting(&origin);
    let mut client = edge.visitor().connect("db.example").await.unwrap();
    let mut greeting = [0; 11];
    client.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"220 ready\r\n");
    client.write_all(b"quit").await.unwrap();
    client.shutdown().await.unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "QUIT");
    let mut log = Vec::new();
    eventually("the connection is logged", || {
        log = edge.proxy.access_log();
        !log.is_empty()
    });
    assert_eq!(log[0]["requested_server_name"], "db.example");
    assert_eq!(log[0]["bytes_received"], 4);
    assert_eq!(log[0]["bytes_sent"], 15);
    assert_eq!(log[0]["response_flags"], "-");
}

#[tokio::test]
async fn unknown_sni_is_rejected() {
    let origin = RawOrigin::start(|_, _| {});
    let edge = decrypting(&origin);
    assert!(edge.visitor().connect("other.example").await.is_err());
}
