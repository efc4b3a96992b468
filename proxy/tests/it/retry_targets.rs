//! Retry targets: endpoints that load balancing may pick, and others only if a rule allows them.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::Response;

use crate::balancing::{ask, mesh};
use crate::support::DEADLINE;
use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin, RawOrigin, full};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;

const REQUESTS: usize = 40;

/// Traffic policies that keep traffic in the zone of the proxy: by preference, and by a distribution of 100 percent.
const ZONES: [&str; 2] = [
    "localityLbSetting: {enabled: true}}, outlierDetection: {consecutive5xxErrors: 0}",
    "localityLbSetting: {enabled: true, distribute: [{from: r/a, to: {r/a: 100}}]}}",
];

fn answering(status: u16) -> Origin {
    Origin::start(Back::H1, move |_| async move {
        let response = Response::builder().status(status);
        response.body(full("an answer")).unwrap()
    })
}

fn addresses(origins: &[Origin]) -> Vec<SocketAddr> {
    origins.iter().map(|origin| origin.address).collect()
}

/// Starts a proxy in zone r/a with endpoints there and in r/b, and a rule with these settings.
fn proxy(near: &[SocketAddr], far: &[SocketAddr], settings: &str, policy: &str) -> Proxy {
    let near = near.iter().map(|address| (*address, "r/a"));
    let far = far.iter().map(|address| (*address, "r/b"));
    let endpoints: Vec<_> = near.chain(far).collect();
    let start = Start::new();
    let text = mesh(start.edge(), &endpoints, policy);
    let text = text.replace("retries: {attempts: 0}", settings);
    start
        .args(["--cluster", "r/a/g/c"])
        .file("mesh.yaml", text)
        .start()
}

fn statuses(proxy: &Proxy) -> Vec<u16> {
    let mut client = Raw::connect(proxy.edge);
    let ask = |_| ask(&mut client, "").status;
    (0..REQUESTS).map(ask).collect()
}

fn seen(origins: &[Origin]) -> Vec<usize> {
    origins.iter().map(|origin| origin.seen().len()).collect()
}

#[test]
fn retries_stay_within_the_load_distribution() {
    for balancer in [
        "simple: LEAST_REQUEST",
        "simple: ROUND_ROBIN",
        "consistentHash: {useSourceIp: true}",
    ] {
        for zones in ZONES {
            let near = [(); 2].map(|()| answering(503));
            let far = [(); 4].map(|()| answering(200));
            let settings = "retries: {attempts: 4, retryOn: '503', backoff: 1ms, retryRemoteLocalities: false, \
                            retryIgnorePreviousHosts: true}";
            let policy = format!("{{loadBalancer: {{{balancer}, {zones}}}");
            let proxy = proxy(&addresses(&near), &addresses(&far), settings, &policy);
            assert_eq!(statuses(&proxy), [503; REQUESTS], "{policy}");
            assert_eq!(seen(&far), [0; 4], "{policy}");
            let seen = seen(&near);
            assert_eq!(seen.iter().sum::<usize>(), 5 * REQUESTS, "{policy}");
            // the second attempt of each request avoids the endpoint of the first
            assert!(
                seen.iter().all(|seen| *seen >= REQUESTS),
                "{policy} {seen:?}"
            );
        }
    }
}

#[test]
fn default_retries_stay_within_the_load_distribution() {
    for zones in ZONES {
        let near = [free_address(), free_address()];
        let far = [(); 4].map(|()| answering(200));
        let policy = format!("{{loadBalancer: {{simple: ROUND_ROBIN, {zones}}}");
        let proxy = proxy(&near, &addresses(&far), "name: a", &policy);
        assert_eq!(statuses(&proxy), [503; REQUESTS], "{policy}");
        assert_eq!(seen(&far), [0; 4], "{policy}");
        let retries = proxy.metric("strait_upstream_retries_total", &[]);
        assert_eq!(retries, 2.0 * REQUESTS as f64);
    }
}

#[test]
fn retry_remote_localities_skips_tried_priorities_after_two_attempts() {
    for balancer in [
        "simple: LEAST_REQUEST",
        "simple: ROUND_ROBIN",
        "consistentHash: {useSourceIp: true}",
    ] {
        let near = [(); 2].map(|()| answering(503));
        let far = [(); 4].map(|()| answering(200));
        let settings =
            "retries: {attempts: 4, retryOn: '503', backoff: 1ms, retryRemoteLocalities: true}";
        let widened = format!("{{loadBalancer: {{{balancer}, {}}}", ZONES[0]);
        let (near_at, far_at) = (addresses(&near), addresses(&far));
        let proxy_of = |policy: &str| proxy(&near_at, &far_at, settings, policy);
        assert_eq!(statuses(&proxy_of(&widened)), [200; REQUESTS], "{balancer}");
        assert_eq!(seen(&near).iter().sum::<usize>(), 2 * REQUESTS);
        let attempts = far.iter().flat_map(|origin| origin.seen());
        let third = |count: &str| count == "3";
        let mut attempts =
            attempts.map(|seen| seen.header("x-envoy-attempt-count").is_some_and(third));
        assert!(attempts.all(|is_third| is_third), "{balancer}");
        let used = seen(&far).into_iter().filter(|seen| *seen > 0).count();
        assert!(
            used > 1 || balancer.starts_with("consistentHash"),
            "{balancer}"
        );
        // traffic that is distributed has one priority
        let distributed = format!("{{loadBalancer: {{{balancer}, {}}}", ZONES[1]);
        let before = seen(&far);
        assert_eq!(
            statuses(&proxy_of(&distributed)),
            [503; REQUESTS],
            "{balancer}"
        );
        assert_eq!(seen(&far), before);
    }
}

#[test]
fn tcp_connection_attempts_stay_within_the_load_distribution() {
    for zones in ZONES {
        let near = [free_address(), free_address()];
        let accepted = Arc::<AtomicUsize>::default();
        let far = [(); 4].map(|()| {
            let accepted = Arc::clone(&accepted);
            RawOrigin::start(move |_, _| {
                accepted.fetch_add(1, Ordering::SeqCst);
            })
        });
        let far = far.map(|origin| origin.address);
        let endpoint = |zone: &str, at: &SocketAddr| {
            let (ip, port) = (at.ip(), at.port());
            format!("{{address: {ip}, ports: {{tcp: {port}}}, locality: {zone}}}")
        };
        let near = near.iter().map(|at| endpoint("r/a", at));
        let far = far.iter().map(|at| endpoint("r/b", at));
        let endpoints: Vec<String> = near.chain(far).collect();
        let start = Start::new();
        let (ip, port) = (start.edge().ip(), start.edge().port());
        let text = documents([
            format!(
                "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: tcp}}\nspec: {{servers: [{{port: \
                 {{number: {port}, name: tcp, protocol: TCP}}, bind: {ip}, hosts: ['*']}}]}}"
            ),
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: tcp}\nspec: {hosts: ['*'], \
             gateways: [tcp], tcp: [{route: [{destination: {host: a.test}}]}]}"
                .to_owned(),
            format!(
                "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec: {{hosts: [a.test], \
                 resolution: STATIC, ports: [{{number: 1, name: tcp, protocol: TCP}}], endpoints: [{}]}}",
                endpoints.join(", ")
            ),
            format!(
                "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: a}}\nspec: {{host: a.test, \
                 trafficPolicy: {{loadBalancer: {{simple: ROUND_ROBIN, {zones}}}}}"
            ),
        ]);
        let proxy = start
            .args(["--cluster", "r/a/g/c"])
            .file("mesh.yaml", text)
            .start();
        for _ in 0..REQUESTS {
            let mut client = TcpStream::connect(proxy.edge).unwrap();
            client.set_read_timeout(Some(DEADLINE)).unwrap();
            assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
        }
        assert_eq!(accepted.load(Ordering::SeqCst), 0, "{zones}");
        let failed = proxy.metric("strait_upstream_connect_failures_total", &[]);
        assert_eq!(failed, 2.0 * REQUESTS as f64);
    }
}
