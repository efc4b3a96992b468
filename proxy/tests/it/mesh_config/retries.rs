//! `defaultHttpRetryPolicy`.

use hyper::{Response, StatusCode};

use super::Mesh;
use crate::support::mesh::everything_to;
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::Start;
use crate::support::raw::Raw;

#[test]
fn requests_are_retried_as_the_mesh_says() {
    let origin = Origin::start(Back::H1, |_| async {
        let mut response = Response::new(full(""));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response
    });
    let start = Start::new();
    let text = everything_to(start.edge(), &origin);
    let start = start
        .args(["--labels", "istio=ingressgateway"])
        .file("mesh.yaml", text);
    let mesh = Mesh::start(start, "{}\n");
    let mut client = Raw::connect(mesh.proxy.edge);
    for (policy, attempts) in [
        ("", 1),
        ("{attempts: 3, retryOn: '503', backoff: 1ms}", 4),
        ("{attempts: 0}", 1),
    ] {
        if !policy.is_empty() {
            mesh.configure(&format!("defaultHttpRetryPolicy: {policy}\n"));
        }
        let before = origin.seen().len();
        let request = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
        assert_eq!(client.send(request).reply().status, 503);
        assert_eq!(origin.seen().len() - before, attempts, "{policy}");
    }
}
