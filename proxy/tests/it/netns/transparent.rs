//! Transparent interception (TPROXY): the workload sees the client's address, and responses are routed back to the
//! proxy.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use proxy::runtime::interception::{InboundSource, accept_any_destination, original_destination};

use super::lab::{Lab, Node, PROXY, WORKLOAD, arrival};
use crate::support::DEADLINE;

const INBOUND: u16 = 15_006;

/// Forwards one connection to its original destination, from the client's address.
fn forward_one(node: &Node, listener: &TcpListener) -> SocketAddr {
    let (_, client, from) = arrival(&[listener]);
    let to = original_destination(&client, INBOUND).unwrap();
    let server = node.inside(|| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(async {
            let socket = InboundSource::Client(from.ip()).socket(to).unwrap();
            let connected = tokio::time::timeout(DEADLINE, socket.connect(to)).await;
            connected.unwrap().unwrap().into_std().unwrap()
        })
    });
    server.set_nonblocking(false).unwrap();
    splice(&client, &server);
    to
}

/// Copies bytes in both directions until both sides have ended.
fn splice(one: &TcpStream, other: &TcpStream) {
    for stream in [one, other] {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
    }
    let copy = |mut from: &TcpStream, mut to: &TcpStream| {
        std::io::copy(&mut from, &mut to).unwrap();
        to.shutdown(std::net::Shutdown::Write).unwrap();
    };
    thread::scope(|scope| {
        scope.spawn(|| copy(one, other));
        copy(other, one);
    });
}

/// Accepts a connection, reads it to its end, and answers with the address of the client.
fn tell_peer(listener: &TcpListener) -> IpAddr {
    let (_, mut stream, from) = arrival(&[listener]);
    let mut asked = String::new();
    stream.read_to_string(&mut asked).unwrap();
    write!(stream, "{asked} {}", from.ip()).unwrap();
    from.ip()
}

/// Sends a greeting, and returns the response.
fn ask(mut client: TcpStream) -> String {
    client.set_read_timeout(Some(DEADLINE)).unwrap();
    client.write_all(b"hello").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn workload_sees_the_clients_address() {
    Lab::with_each_backend(2, |lab, backend| {
        let [client, server] = lab.nodes();
        server.install(&format!("{backend} -m TPROXY"));
        let inbound = server.listen(INBOUND);
        accept_any_destination(&inbound).unwrap();
        let workload = server.listen(8080);
        for to in server.addresses(8080) {
            let answer = thread::scope(|scope| {
                scope.spawn(|| assert_eq!(forward_one(server, &inbound), to));
                scope.spawn(|| assert_eq!(tell_peer(&workload), client.ip_like(to)));
                ask(client.connect(WORKLOAD, to).unwrap())
            });
            assert_eq!(answer, format!("hello {}", client.ip_like(to)));
        }
    });
}

/// The outbound side of the proxy connects to its own workload: the inbound side must get it, and the workload once.
#[test]
fn workload_that_calls_itself_through_a_service_gets_an_answer() {
    Lab::with_each_backend(1, |lab, backend| {
        let [node] = lab.nodes();
        node.install(&format!("{backend} -m TPROXY"));
        let inbound = node.listen(INBOUND);
        accept_any_destination(&inbound).unwrap();
        let workload = node.listen(8080);
        for to in node.addresses(8080) {
            let answer = thread::scope(|scope| {
                scope.spawn(|| assert_eq!(forward_one(node, &inbound), to));
                scope.spawn(|| assert_eq!(tell_peer(&workload), to.ip()));
                ask(node.connect(PROXY, to).unwrap())
            });
            assert_eq!(answer, format!("hello {}", to.ip()));
        }
    });
}

#[test]
fn outbound_connections_get_their_answers_under_transparent_interception() {
    Lab::with_each_backend(2, |lab, backend| {
        let [client, server] = lab.nodes();
        client.install(&format!("{backend} -m TPROXY"));
        let there = server.listen(8080);
        for to in server.addresses(8080) {
            // replies to it are established connections as well, which the rules deliver
            let answer = thread::scope(|scope| {
                scope.spawn(|| assert_eq!(tell_peer(&there), client.ip_like(to)));
                ask(client.connect(PROXY, to).unwrap())
            });
            assert_eq!(answer, format!("hello {}", client.ip_like(to)));
        }
    });
}
