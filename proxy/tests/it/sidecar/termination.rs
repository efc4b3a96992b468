//! The end of a sidecar: its workload is served until it has no connection any more.

use std::net::TcpStream;

use super::{Sidecar, answering, get, service};
use crate::support::eventually;
use crate::support::origin::Origin;

/// A sidecar of `app: web`, which takes requests for a service `web` and reaches a service `api`.
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
