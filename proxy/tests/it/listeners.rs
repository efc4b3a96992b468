//! Listeners: opening, closing, and sharing of connections between workers.

use std::net::TcpListener;
use std::num::NonZeroUsize;

use proxy::snapshot::ListenerKey;
use proxy::telemetry::Counter;

use crate::support::downstream::{ANY, Downstream, Settings, hello, settings};
use crate::support::eventually;
use crate::support::raw::{GET, Raw};

#[test]
fn keep_alive_connection_serves_several_requests() {
    let downstream = Downstream::hello();
    let mut client = Raw::connect(downstream.address());
    for _ in 0..3 {
        let reply = client.send(GET).reply();
        assert_eq!((reply.status, &reply.body[..]), (200, &b"hello"[..]));
    }
}

#[test]
fn removed_listener_closes_and_others_stay_open() {
    let downstream = Downstream::hello();
    let first = downstream.address();
    let second = ListenerKey::from("127.0.0.2:0".parse::<std::net::SocketAddr>().unwrap());
    downstream.want([ANY, second.clone()]);
    eventually("second opens", || {
        downstream.status_table.address(&second).is_some()
    });
    let second = downstream.status_table.address(&second).unwrap();
    assert_eq!(Raw::connect(second).send(GET).reply().status, 200);

    let mut client = Raw::connect(first);
    client.send(GET).reply();
    downstream.want([ANY]);
    eventually("second closes", || {
        std::net::TcpStream::connect(second).is_err()
    });
    assert_eq!(client.send(GET).reply().status, 200);
    assert_eq!(downstream.status_table.listeners().len(), 1);
}

#[test]
fn port_in_use_is_reported_and_bound_when_free() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let downstream = Downstream::hello();
    let key = ListenerKey::from(address);
    downstream.want([ANY, key.clone()]);
    let status = || {
        let listeners = downstream.status_table.listeners();
        listeners.into_iter().find(|status| status.key == key)
    };
    eventually("failure is reported", || {
        status().is_some_and(|status| status.error().is_some())
    });
    assert!(status().unwrap().error().unwrap().contains("in use"));
    let served = Raw::connect(downstream.address()).send(GET).reply();
    assert_eq!(served.status, 200);

    drop(taken);
    eventually("it opens", || {
        status().is_some_and(|status| status.is_open())
    });
    assert_eq!(Raw::connect(address).send(GET).reply().status, 200);
}

#[test]
fn connections_past_the_limit_are_closed_and_counted() {
    let mut settings = settings();
    settings.listener.connections_max = 2;
    let downstream = Downstream::start(&settings, || hello);
    let mut open: Vec<_> = (0..2).map(|_| Raw::connect(downstream.address())).collect();
    eventually("both are accepted", || downstream.connections() == 2);
    let mut refused = Raw::connect(downstream.address());
    assert!(refused.send(GET).is_closed());
    assert_eq!(downstream.counter(Counter::DownstreamRejectedLimit), 1);
    for client in &mut open {
        assert_eq!(client.send(GET).reply().status, 200);
    }
    drop(open.pop());
    eventually("its slot is free again", || downstream.connections() == 1);
    let reply = Raw::connect(downstream.address()).send(GET).reply();
    assert_eq!(reply.status, 200);
}

#[test]
fn connections_are_spread_over_workers() {
    let settings = Settings {
        concurrency: NonZeroUsize::new(2).unwrap(),
        ..settings()
    };
    let downstream = Downstream::start(&settings, || {
        let worker = std::thread::current().name().unwrap().to_owned();
        move |_, _| {
            let body = http_body_util::Full::from(worker.clone());
            async move { hyper::Response::new(body) }
        }
    });
    let mut clients: Vec<_> = (0..8).map(|_| Raw::connect(downstream.address())).collect();
    let workers = clients.iter_mut().map(|client| client.send(GET).reply());
    let mut workers: Vec<_> = workers.map(|reply| reply.body).collect();
    workers.sort();
    let split = workers.partition_point(|worker| *worker == workers[0]);
    assert!((3..=5).contains(&split), "{split} of 8 on one worker");
}
