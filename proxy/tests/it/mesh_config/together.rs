//! Changes of the mesh configuration together with resources.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Mesh;
use crate::support::eventually;
use crate::support::mesh::{documents, everything_to};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::Start;
use crate::support::raw::Raw;

const GET: &str = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

/// Settings of which each takes effect while the proxy runs.
const FOLLOWED: &str = "enableAutoMtls: false\nconnectTimeout: 3s\ntcpKeepalive: {time: 60s}\n\
    tlsDefaults: {minProtocolVersion: TLSV1_3}\nlocalityLbSetting: {enabled: false}\n\
    defaultTrafficPolicy: {outlierDetection: {consecutive5xxErrors: 3}}\n\
    defaultHttpRetryPolicy: {attempts: 1}\npathNormalization: {normalization: MERGE_SLASHES}\n";

/// Returns a mesh configuration with this provider.
fn provider(name: &str) -> String {
    format!(
        "extensionProviders: [{{name: {name}, envoyExtAuthzHttp: {{service: web.test, port: 80}}}}]\n"
    )
}

/// Returns a policy that asks a provider about some requests.
fn policy(provider: &str) -> String {
    format!(
        "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {{name: ask}}\n\
         spec: {{action: CUSTOM, provider: {{name: {provider}}}, rules: [{{to: [{{operation: {{paths: [/asked]}}}}]}}]}}\n"
    )
}

fn start(config: &str, policies: &str) -> (Mesh, Origin) {
    let origin = Origin::named(Back::H1, "o");
    let start = Start::new();
    let text = documents([everything_to(start.edge(), &origin)]);
    let start = start
        .args(["--labels", "istio=ingressgateway"])
        .file("mesh.yaml", text)
        .file("policies.yaml", policies);
    (Mesh::start(start, config), origin)
}

#[test]
fn provider_and_policy_change_as_one_configuration() {
    let (mesh, _origin) = start(&provider("one"), &policy("one"));
    let generation = || mesh.proxy.metric("strait_config_generation", &[]);
    let mut client = Raw::connect(mesh.proxy.edge);
    // the provider is unknown while only one of the two has changed
    let mut status = || client.send(GET.replacen("/ ", "/asked ", 1)).reply().status;
    assert_eq!(status(), 200);
    // one try could lose time between the two files
    let is_one_change = |next: &str| {
        let before = generation();
        fs::write(mesh.config.path(), provider(next)).unwrap();
        mesh.proxy.write("policies.yaml", policy(next));
        eventually("both are in effect", || {
            generation() > before && status() == 200
        });
        generation() - before == 1.0
    };
    assert!(["two", "three", "four"].into_iter().any(is_one_change));
}

#[test]
fn changes_lose_no_request() {
    let (mesh, _origin) = start("{}\n", "");
    let (is_done, edge) = (AtomicBool::new(false), mesh.proxy.edge);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let (mut kept, mut served) = (Raw::connect(edge), 0);
            while !is_done.load(Ordering::Relaxed) {
                assert_eq!(kept.send(GET).reply().status, 200);
                assert_eq!(Raw::connect(edge).send(GET).reply().status, 200);
                served += 2;
            }
            served
        });
        for config in [FOLLOWED, "{}\n", FOLLOWED, "{}\n"] {
            mesh.configure(config);
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(client.join().unwrap() > 10);
    });
}
