//! Gateways that listen on Unix sockets.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::support::mesh::documents;
use crate::support::proxy::{Proxy, Start};
use crate::support::{DEADLINE, eventually};

pub(crate) fn mesh(bind: &str) -> String {
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

pub(crate) fn get(mut stream: UnixStream) -> String {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
        .write_all(b"GET /unix HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

#[test]
fn listener_on_a_unix_path_creates_and_removes_its_file() {
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
fn listener_on_an_abstract_unix_name_serves_requests() {
    let name = format!("strait-test-{}", std::process::id());
    let mesh = mesh(&format!("unix://@{name}"));
    let _proxy: Proxy = Start::new().file("mesh.yaml", mesh).start();
    let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
    assert!(get(UnixStream::connect_addr(&address).unwrap()).ends_with("hello"));
}

/// Results of clients that open a new connection for each request.
#[derive(Default)]
struct Seen {
    answered: AtomicU32,
    lost: AtomicU32,
    over: AtomicBool,
}

fn connect_and_ask(path: &Path, seen: &Seen) {
    while !seen.over.load(Ordering::Relaxed) {
        let Ok(mut stream) = UnixStream::connect(path) else {
            std::thread::yield_now();
            continue;
        };
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let asked = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let mut reply = String::new();
        let read = asked.and_then(|()| stream.read_to_string(&mut reply));
        let count = match read {
            Ok(_) if reply.starts_with("HTTP/1.1 200 ") => &seen.answered,
            _ => &seen.lost,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn shutdown_answers_every_connection_of_a_unix_socket() {
    for round in 0..3 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("edge.sock");
        let start = Start::new().args(["--concurrency", "3"]);
        let mesh = mesh(&format!("unix://{}", path.display()));
        let mut proxy = start.file("mesh.yaml", mesh).start();
        let seen = Arc::<Seen>::default();
        let clients: Vec<_> = (0..16)
            .map(|_| {
                let (path, seen) = (path.clone(), Arc::clone(&seen));
                std::thread::spawn(move || connect_and_ask(&path, &seen))
            })
            .collect();
        eventually("load", || seen.answered.load(Ordering::Relaxed) > 500);
        proxy.signal("TERM");
        assert!(proxy.wait().success());
        seen.over.store(true, Ordering::Relaxed);
        clients
            .into_iter()
            .for_each(|client| client.join().unwrap());
        assert_eq!(seen.lost.load(Ordering::Relaxed), 0, "round {round}");
        assert!(!path.exists());
    }
}
