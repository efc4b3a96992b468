//! `pathNormalization`.

use std::fs;

use super::Mesh;
use crate::support::mesh::{documents, everything_to};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::Start;
use crate::support::raw::Raw;

const DENY: &str = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\n\
    metadata: {name: deny, namespace: default}\n\
    spec: {action: DENY, rules: [{to: [{operation: {paths: [/admin]}}]}]}\n";

#[test]
fn policies_routes_and_endpoints_see_the_path_that_the_mesh_normalizes() {
    let origin = Origin::named(Back::H1, "o");
    let start = Start::new();
    let mesh = documents([everything_to(start.edge(), &origin), DENY.to_owned()]);
    let start = start
        .args(["--labels", "istio=ingressgateway"])
        .file("mesh.yaml", mesh);
    let mesh = Mesh::start(start, "{}\n");
    let mut client = Raw::connect(mesh.proxy.edge);
    // one connection, which no change interrupts
    let mut sent = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        match client.send(request).reply().status {
            200 => origin.seen().pop().unwrap().path().to_owned(),
            status => status.to_string(),
        }
    };
    let paths = [
        "/a//b%2Fc?d=//",
        "/x/../admin",
        "//admin",
        "/x%2F..%5Cadmin",
        "/x/..;/a",
    ];
    let base = ["/a//b%2Fc?d=//", "403", "//admin", "/x%2F..%5Cadmin", "400"];
    for (normalization, expected) in [
        ("DEFAULT", base),
        (
            "MERGE_SLASHES",
            ["/a/b%2Fc?d=//", "403", "403", "/x%2F..%5Cadmin", "400"],
        ),
        (
            "DECODE_AND_MERGE_SLASHES",
            ["/a/b/c?d=//", "403", "403", "403", "400"],
        ),
        ("NONE", paths),
        ("BASE", base),
    ] {
        if normalization != "DEFAULT" {
            let config = format!("pathNormalization: {{normalization: {normalization}}}\n");
            mesh.configure(&config);
        }
        assert_eq!(paths.map(&mut sent), expected, "{normalization}");
    }
}

#[test]
fn findings_about_paths_follow_the_mesh_configuration() {
    let policy = DENY.replace("/admin", "/a//b");
    let start = Start::new().file("mesh.yaml", policy);
    let mesh = Mesh::start(start.args(["--allow-empty"]), "{}\n");
    for (normalization, code) in [("MERGE_SLASHES", "AZ110"), ("NONE", "AZ132")] {
        assert!(!mesh.proxy.stderr().contains(code));
        let config = format!("pathNormalization: {{normalization: {normalization}}}\n");
        fs::write(mesh.config.path(), config).unwrap();
        mesh.proxy.has_logged(code);
    }
}
