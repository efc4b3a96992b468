//! Identities of clients that a provider gets: only if the authorities of the mesh have verified them.

use rustls::pki_types::CertificateDer;

use super::grpc::{CheckResponse, Provider};
use super::*;
use crate::support::pki::{Authority, Leaf, Pair};
use crate::support::tls::{Edge as TlsEdge, files, secret, server};

const KNOWN: &str = "spiffe://cluster.local/ns/foo/sa/bar";

/// Gateway with a server of a mode, whose authority is that of the mesh as well, and a provider that is asked about
/// everything.
struct Gate {
    edge: TlsEdge,
    authority: Authority,
    provider: Provider,
    _files: (tempfile::TempDir, NamedTempFile),
}

impl Gate {
    fn start(mode: &str) -> Self {
        let provider = Provider::start(|_| CheckResponse::default());
        let (ca, authority) = (Authority::new("ca"), Authority::new("mesh"));
        let directory = tempfile::tempdir().unwrap();
        let own = authority.server(&["spiffe://cluster.local/ns/default/sa/gateway", "a.test"]);
        let written = [
            ("cert-chain.pem", &*own.chain),
            ("key.pem", &own.key),
            ("root-cert.pem", &authority.pem()),
        ];
        files(directory.path(), &written);
        let pair = ca.server(&["a.test"]);
        let values = [
            ("tls.crt", &*pair.chain),
            ("tls.key", &*pair.key),
            ("ca.crt", &authority.pem()),
        ];
        let config = NamedTempFile::new().unwrap();
        fs::write(config.path(), super::provider("envoyExtAuthzGrpc", "")).unwrap();
        let more = [
            secret("cred", &values),
            service("authz", Back::H2, &[(provider.server.address, "v1")]),
            ask(""),
        ];
        let tls = match mode {
            "ISTIO_MUTUAL" => "{mode: ISTIO_MUTUAL}".to_owned(),
            mode => format!("{{mode: {mode}, credentialName: cred}}"),
        };
        let servers = |edge| vec![server(edge, "https", "['*']", &tls)];
        let paths = [directory.path(), config.path()].map(|path| path.to_str().unwrap().to_owned());
        let [certs, config_path] = paths;
        let edge = TlsEdge::start_with(ca, &more, servers, |start| {
            start
                .args(["--mesh-certs", &certs])
                .args(["--mesh-config", &config_path])
        });
        Self {
            edge,
            authority,
            provider,
            _files: (directory, config),
        }
    }

    fn issue(&self, name: &str) -> Pair {
        self.authority.issue(Leaf {
            subject: "client",
            names: &[name],
            ..Leaf::default()
        })
    }

    /// Principal that the provider gets of a client with a certificate of this name.
    async fn principal(&self, name: &str) -> String {
        let pair = self.issue(name);
        let mut visitor = self.edge.visitor().with(&pair);
        let authority = CertificateDer::from(self.authority.der());
        visitor.roots.add(authority).unwrap();
        assert_eq!(visitor.status("a.test").await, 200);
        let asked = self.provider.asked.lock().unwrap().last().cloned();
        asked.unwrap().attributes.unwrap().source.unwrap().principal
    }
}

#[tokio::test]
async fn provider_gets_only_identities_that_the_mesh_has_verified() {
    let of_mesh = Gate::start("ISTIO_MUTUAL");
    assert_eq!(of_mesh.principal(KNOWN).await, KNOWN);
    let other = "spiffe://elsewhere.test/ns/foo/sa/bar";
    assert_eq!(of_mesh.principal(other).await, "");
    // authorities of a Gateway could name any workload of the mesh
    for mode in ["MUTUAL", "OPTIONAL_MUTUAL"] {
        let of_gateway = Gate::start(mode);
        assert_eq!(of_gateway.principal(KNOWN).await, "", "{mode}");
    }
}
