//! Taps of a sidecar.

use super::*;
use crate::taps::Tap;

#[test]
fn tap_of_a_sidecar_shows_both_directions() {
    let (workload, other) = (answering(), answering());
    let port = workload.address.port();
    let sidecar = Sidecar::start(
        &[],
        [
            service("web", "10.96.0.1", ("http", 80), workload.address),
            service("other", "10.96.0.2", ("http", 80), other.address),
        ],
    );
    let mut tap = Tap::open(&sidecar.proxy, &["-o", "json", "--max", "2"]);
    let mut out = sidecar.leaves("10.96.0.2:80");
    assert_eq!(get(&mut out, "other").status, 200);
    let request = tap.request();
    assert_eq!((&*request.direction, request.status), ("outbound", 200));
    assert!(request.listener.ends_with(":80"), "{request:?}");
    let destination = request.destination.unwrap();
    assert_eq!(destination.host, "other.default.svc.cluster.local");
    assert_eq!(request.endpoint, Some(other.address.to_string()));
    assert_eq!(request.attempts.len(), 1);

    let dialed = format!("{}:{port}", workload.address.ip());
    let mut arrived = sidecar.arrives(&dialed);
    assert_eq!(get(&mut arrived, "web").status, 200);
    let request = tap.request();
    assert_eq!((&*request.direction, request.status), ("inbound", 200));
    assert_eq!(request.endpoint, Some(workload.address.to_string()));
    assert!(request.attempts[0].first_byte_ms.is_some());
}
