//! Gateways that accept on Unix sockets.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use crate::support::mesh::documents;
use crate::support::proxy::{Proxy, Start};
use crate::support::{DEADLINE, eventually};

fn mesh(bind: &str) -> String {
    documents([
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: edge}}\nspec:\n  servers:\n  \
             - {{port: {{number: 0, name: http, protocol: HTTP}}, bind: '{bind}', hosts: ['*']}}\n"
        ),
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: all}\nspec:\n  hosts: ['*']\n  \
         gateways: [edge]\n  http: [{directResponse: {status: 200, body: {string: hello}}}]\n"
            .to_owned(),
    ])
}

fn get(mut stream: UnixStream) -> String {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
        .write_all(b"GET /unix HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

#[test]
fn requests_come_over_a_path_whose_file_comes_and_goes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("edge.sock");
    // As a process leaves it that was killed.
    drop(UnixListener::bind(&path).unwrap());
    let bind = format!("unix://{}", path.display());
    let proxy = Start::new().file("mesh.yaml", mesh(&bind)).start();
    for _ in 0..8 {
        let reply = get(UnixStream::connect(&path).unwrap());
        assert!(
            reply.starts_with("HTTP/1.1 200 ") && reply.ends_with("hello"),
            "{reply}"
        );
    }
    let logged = proxy.logged("/unix");
    assert_eq!(logged["downstream_remote_address"], "127.0.0.1:0");
    let listeners = proxy.page("/listeners");
    assert!(
        listeners.contains(&format!("{bind}::{bind}")),
        "{listeners}"
    );
    proxy.write("mesh.yaml", mesh("unix://@other"));
    eventually("the file is gone", || !path.exists());
}

#[test]
fn requests_come_over_an_abstract_name() {
    let name = format!("strait-test-{}", std::process::id());
    let mesh = mesh(&format!("unix://@{name}"));
    let _proxy: Proxy = Start::new().file("mesh.yaml", mesh).start();
    let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
    assert!(get(UnixStream::connect_addr(&address).unwrap()).ends_with("hello"));
}
