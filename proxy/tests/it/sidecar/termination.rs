//! Termination of a sidecar: it serves its workload until the workload has no connections left.

use std::net::TcpStream;

use super::{Sidecar, answering, get, service};
use crate::support::eventually;
use crate::support::origin::Origin;

/// Starts a sidecar of `app: web`, which accepts requests for a service `web` and reaches a service `api`.
fn sidecar(arguments: &[&str], web: &Origin, api: &Origin) -> Sidecar {
    Sidecar::start(
        arguments,
        [
            service("web", "10.96.0.7", ("http", 80), web.address),
            service("api", "10.96.0.1", ("http", 80), api.address),
        ],
    )
}

#[test]
fn outbound_serves_new_and_open_connections_while_inbound_drains() {
    let (web, api) = (answering(), answering());
    let mut sidecar = sidecar(
        &[
            "--termination-drain",
            "1h",
            "--termination-drain-minimum",
            "0s",
        ],
        &web,
        &api,
    );
    let mut inbound = sidecar.arrives(&web.address.to_string());
    assert_eq!(get(&mut inbound, "web").status, 200);
    let mut open = sidecar.leaves("10.96.0.1:80");
    assert_eq!(get(&mut open, "api").status, 200);
    sidecar.proxy.signal("TERM");
    eventually("readiness fails", || !sidecar.proxy.is_ready());
    eventually("inbound refuses", || {
        TcpStream::connect(sidecar.inbound).is_err()
    });
    assert!(inbound.is_closed(), "an idle inbound connection ends");
    for _ in 0..3 {
        let mut new = sidecar.leaves("10.96.0.1:80");
        let reply = get(&mut new, "api");
        assert_eq!(reply.status, 200, "a new connection of the workload");
        assert!(!reply.has("connection: close"));
    }
    assert_eq!(get(&mut open, "api").status, 200, "an open one");
    let log = sidecar.proxy.has_logged("draining inbound");
    let line = log.lines().find(|line| line.contains("draining inbound"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    // connections that look whether inbound refuses may count as well
    assert!(line.contains(" outbound=1 "), "{line}");
    assert!(!line.contains(" inbound=0 "), "{line}");
    let page = sidecar.proxy.page("/listeners?format=json");
    for (address, state) in [(sidecar.inbound, "draining"), (sidecar.outbound, "open")] {
        let views: Vec<serde_json::Value> = serde_json::from_str(&page).unwrap();
        let view = views
            .iter()
            .find(|view| view["name"] == address.to_string());
        assert_eq!(view.unwrap()["state"], state, "{address}: {page}");
    }
    assert!(sidecar.proxy.ended().is_none());
    drop(open);
    assert!(sidecar.proxy.wait().success());
    assert!(TcpStream::connect(sidecar.outbound).is_err());
}

#[test]
fn open_connections_of_the_workload_end_with_the_termination_drain() {
    let (web, api) = (answering(), answering());
    let mut sidecar = sidecar(&["--termination-drain", "100ms"], &web, &api);
    let mut open = sidecar.leaves("10.96.0.1:80");
    assert_eq!(get(&mut open, "api").status, 200);
    sidecar.proxy.signal("TERM");
    assert!(sidecar.proxy.wait().success());
    assert!(open.is_closed());
    let log = sidecar.proxy.stderr();
    assert!(log.contains("--termination-drain is over"), "{log}");
}

#[test]
fn second_signal_ends_the_termination_drain() {
    let (web, api) = (answering(), answering());
    let mut sidecar = sidecar(&["--termination-drain", "1h"], &web, &api);
    let mut open = sidecar.leaves("10.96.0.1:80");
    assert_eq!(get(&mut open, "api").status, 200);
    sidecar.proxy.signal("TERM");
    eventually("readiness fails", || !sidecar.proxy.is_ready());
    sidecar.proxy.signal("TERM");
    assert!(sidecar.proxy.wait().success());
}

const NO_MINIMUM: [&str; 4] = [
    "--termination-drain",
    "1h",
    "--termination-drain-minimum",
    "0s",
];

#[test]
fn clients_are_told_until_the_workload_closes_its_port_and_the_sidecar_ends_then() {
    let (web, api) = (answering(), answering());
    let at = web.address.to_string();
    let arguments = [&["--pre-drain", "1h"][..], &NO_MINIMUM].concat();
    let mut sidecar = sidecar(&arguments, &web, &api);
    let mut idle = sidecar.arrives(&at);
    assert_eq!(get(&mut idle, "web").status, 200);
    let mut kept = sidecar.arrives(&at);
    assert!(!get(&mut kept, "web").has("connection: close"));
    sidecar.proxy.signal("TERM");
    eventually("clients are told", || {
        let reply = get(&mut sidecar.arrives(&at), "web");
        assert_eq!(reply.status, 200);
        reply.has("connection: close")
    });
    let reply = get(&mut kept, "web");
    assert!(reply.status == 200 && reply.has("connection: close"));
    assert!(kept.is_closed());
    let mut outbound = sidecar.leaves("10.96.0.1:80");
    assert!(!get(&mut outbound, "api").has("connection: close"));
    assert!(sidecar.proxy.ended().is_none());
    drop((web, outbound));
    assert!(idle.is_closed(), "what is idle is closed");
    assert!(sidecar.proxy.wait().success());
}

#[test]
fn native_sidecar_is_told_by_its_hook_and_ends_once_its_workload_has_ended() {
    let (web, api) = (answering(), answering());
    let at = web.address.to_string();
    let mut sidecar = sidecar(&NO_MINIMUM, &web, &api);
    let mut idle = sidecar.arrives(&at);
    assert_eq!(get(&mut idle, "web").status, 200);
    let mut outbound = sidecar.leaves("10.96.0.1:80");
    assert_eq!(get(&mut outbound, "api").status, 200);
    assert_eq!(
        sidecar.proxy.try_page("POST", "/drain?announce").unwrap().0,
        200
    );
    eventually("clients are told", || {
        get(&mut sidecar.arrives(&at), "web").has("connection: close")
    });
    drop(web);
    assert!(idle.is_closed(), "what is idle is closed");
    eventually("inbound refuses", || {
        TcpStream::connect(sidecar.inbound).is_err()
    });
    // the workload has closed its port, and still sends requests
    let mut new = sidecar.leaves("10.96.0.1:80");
    for outbound in [&mut outbound, &mut new] {
        assert_eq!(get(outbound, "api").status, 200);
    }
    drop((outbound, new));
    assert!(
        sidecar.proxy.ended().is_none(),
        "nothing ends before SIGTERM"
    );
    sidecar.proxy.signal("TERM");
    assert!(sidecar.proxy.wait().success());
}

#[test]
fn sidecar_whose_workload_ended_first_ends_at_once() {
    let (web, api) = (answering(), answering());
    let arguments = [&["--pre-drain", "1h"][..], &NO_MINIMUM].concat();
    let at = web.address.to_string();
    let mut sidecar = sidecar(&arguments, &web, &api);
    let mut idle = sidecar.arrives(&at);
    assert_eq!(get(&mut idle, "web").status, 200);
    drop(web);
    sidecar.proxy.signal("TERM");
    assert!(idle.is_closed());
    assert!(sidecar.proxy.wait().success());
}

#[test]
fn used_connection_ends_without_a_reply_when_the_workload_takes_no_connections() {
    let (web, api) = (answering(), answering());
    let at = web.address.to_string();
    let sidecar = sidecar(&[], &web, &api);
    let mut kept = sidecar.arrives(&at);
    assert_eq!(get(&mut kept, "web").status, 200);
    drop(web);
    kept.send("GET / HTTP/1.1\r\nHost: web\r\n\r\n");
    assert!(kept.is_closed());
    assert_eq!(get(&mut sidecar.arrives(&at), "web").status, 503);
}
