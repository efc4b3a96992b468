//! Mesh identity of the workload: its source, the permitted certificates, and its effect at endpoints.

use std::path::Path;

use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::pki::{Authority, Pair};
use crate::support::proxy::{Proxy, Start};
use crate::support::tls::files;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::upstream_tls::{get, rule, service};

const OWN: &str = "spiffe://cluster.local/ns/shop/sa/edge";
const MUTUAL: &str = "{tls: {mode: ISTIO_MUTUAL}}";

/// Files of a workload's identity.
pub(crate) struct Workload {
    pub(crate) ca: Authority,
    directory: tempfile::TempDir,
}

impl Workload {
    /// Creates the files, with a certificate for this SPIFFE ID.
    pub(crate) fn of(id: &str) -> Self {
        let workload = Self {
            ca: Authority::new("mesh"),
            directory: tempfile::tempdir().unwrap(),
        };
        files(workload.path(), &[("ca.pem", &workload.ca.pem())]);
        workload.renew(id);
        workload
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Replaces the certificate with one for this SPIFFE ID.
    fn renew(&self, id: &str) -> Pair {
        let pair = self.ca.server(&[id]);
        for (name, text) in [("own.key", &pair.key), ("own.pem", &pair.chain)] {
            let draft = self.path().join("draft");
            std::fs::write(&draft, text).unwrap();
            std::fs::rename(draft, self.path().join(name)).unwrap();
        }
        pair
    }

    fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    /// Returns the flags that name the files, for a workload of namespace `shop`.
    pub(crate) fn flags(&self) -> Vec<String> {
        let of = |flag: &str, name: &str| [flag.to_owned(), self.file(name)];
        let files = [
            of("--workload-cert", "own.pem"),
            of("--workload-key", "own.key"),
            of("--mesh-ca", "ca.pem"),
            ["--namespace".to_owned(), "shop".to_owned()],
        ];
        files.into_iter().flatten().collect()
    }

    /// Starts a gateway with this identity that routes requests to `a.test`.
    fn gateway(&self, more: &[&str], resources: &[String]) -> Start {
        let start = Start::new();
        let text = documents([
            gateway(&[start.edge()]),
            routes(
                "a",
                "['*']",
                "- {name: a, route: [{destination: {host: a.test, port: {number: 80}}}]}",
            ),
        ]);
        start
            .args(self.flags())
            .args(more.iter().copied())
            .file("mesh.yaml", text)
            .file("more.yaml", documents(resources))
    }

    /// Starts an endpoint with this SPIFFE ID, for clients of the mesh.
    pub(crate) fn endpoint(&self, id: &str) -> TlsOrigin {
        let pair = self.ca.server(&[id]);
        TlsOrigin::start(Speaks::H1, &Terms::new(&pair).for_clients_of(&self.ca))
    }
}

/// Returns the last certificate that the endpoint received.
fn shown(origin: &TlsOrigin) -> Option<Vec<u8>> {
    origin.callers().last()?.certificate.clone()
}

#[test]
fn workload_files_are_the_identity_and_rotation_is_followed() {
    let workload = Workload::of(OWN);
    let origin = workload.endpoint("spiffe://cluster.local/ns/shop/sa/web");
    let resources = [service(&origin, "HTTP", ""), rule(MUTUAL)];
    let proxy = workload.gateway(&[], &resources).start();
    assert_eq!(get(&proxy).status, 200);

    let renewed = workload.renew(OWN);
    eventually("the new certificate is shown", || {
        assert_eq!(get(&proxy).status, 200);
        shown(&origin) == Some(renewed.der.clone())
    });
}

#[test]
fn certificate_of_another_workload_keeps_the_proxy_from_starting() {
    for (id, more, expected) in [
        (
            "spiffe://cluster.local/ns/bank/sa/edge",
            vec![],
            "spiffe://cluster.local/ns/shop/sa/*",
        ),
        (
            "spiffe://other/ns/shop/sa/edge",
            vec![],
            "spiffe://cluster.local/ns/shop/sa/*",
        ),
        (
            OWN,
            vec!["--trust-domain", "td"],
            "spiffe://td/ns/shop/sa/*",
        ),
        (
            OWN,
            vec!["--service-account", "web"],
            "spiffe://cluster.local/ns/shop/sa/web",
        ),
        ("a.test", vec![], "spiffe://cluster.local/ns/shop/sa/*"),
    ] {
        let workload = Workload::of(id);
        let mut proxy = workload.gateway(&more, &[]).spawn();
        assert_eq!(proxy.wait().code(), Some(1), "{id}");
        let text = proxy.stderr();
        let said = format!("the certificate is for {id}, not for {expected}");
        assert!(text.contains(&said), "{text}");
        assert!(text.contains(&workload.file("own.pem")), "{text}");
        assert!(text.contains("--namespace"), "{text}");
    }
}

#[test]
fn rotation_to_a_certificate_of_another_workload_is_refused() {
    let workload = Workload::of(OWN);
    let origin = workload.endpoint("spiffe://cluster.local/ns/shop/sa/web");
    let resources = [service(&origin, "HTTP", ""), rule(MUTUAL)];
    let proxy = workload.gateway(&[], &resources).start();
    assert_eq!(get(&proxy).status, 200);
    let before = shown(&origin);

    workload.renew("spiffe://cluster.local/ns/bank/sa/edge");
    eventually("the refusal is logged", || {
        proxy
            .stderr()
            .contains("not for spiffe://cluster.local/ns/shop/sa/*")
    });
    proxy.has_logged("the last good one stays in effect");
    assert_eq!(get(&proxy).status, 200);
    assert_eq!(shown(&origin), before);
}

#[test]
fn aliases_of_the_trust_domain_are_equal() {
    let workload = Workload::of("spiffe://old.example/ns/shop/sa/edge");
    let origin = workload.endpoint("spiffe://old.example/ns/shop/sa/web");
    let entry = service(&origin, "HTTP", "").replace(
        "{address: 127.0.0.1}",
        "{address: 127.0.0.1, serviceAccount: web}",
    );
    let start = |aliases: &str| -> Proxy {
        let flags = ["--trust-domain", "td", "--trust-domain-aliases", aliases];
        // the account of the service is in its namespace
        let entry = entry.replace("{name: a}", "{name: a, namespace: shop}");
        let rule = rule(MUTUAL).replace("{name: a}", "{name: a, namespace: shop}");
        let mut proxy = workload.gateway(&flags, &[entry, rule]).spawn();
        eventually("it starts or ends", || {
            proxy.is_ready() || proxy.ended().is_some()
        });
        proxy
    };
    let proxy = start("else.example,old.example");
    assert_eq!(get(&proxy).status, 200);
    let mut proxy = start("else.example");
    assert_eq!(proxy.wait().code(), Some(1));
}

#[test]
fn plain_text_goes_to_workloads_that_disable_mesh_tls() {
    let workload = Workload::of(OWN);
    let plain = crate::support::origin::Origin::named(crate::support::origin::Back::H1, "plain");
    let (ip, port) = (plain.address.ip(), plain.address.port());
    let entry = format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a, namespace: shop}}\nspec:\n  \
         hosts: [a.test]\n  location: MESH_INTERNAL\n  resolution: STATIC\n  \
         ports: [{{number: 80, name: web, protocol: HTTP, targetPort: {port}}}]\n  \
         endpoints: [{{address: {ip}, labels: {{app: a}}, serviceAccount: web}}]\n"
    );
    let policy = |mode: &str| {
        format!(
            "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {{name: a, namespace: shop}}\nspec:\n  \
             selector: {{matchLabels: {{app: a}}}}\n  mtls: {{mode: {mode}}}\n"
        )
    };
    let proxy = workload
        .gateway(&[], &[entry.clone(), policy("DISABLE")])
        .start();
    assert_eq!(get(&proxy).status, 200);
    proxy.write("more.yaml", documents([entry, policy("STRICT")]));
    eventually("TLS is spoken, which the endpoint does not", || {
        get(&proxy).status == 503
    });
}
