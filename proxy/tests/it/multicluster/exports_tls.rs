//! Exports of a gateway to other clusters over TLS.

use super::*;
use crate::support::client::Front;
use crate::support::pki::{Authority, Leaf, Pair};
use crate::support::tls::{self, Visitor, files, get};

/// Gateway of c2, whose certificates are files.
struct Entrance {
    ca: Authority,
    own: Pair,
    site: Site,
    directory: tempfile::TempDir,
}

impl Entrance {
    fn new() -> Self {
        let ca = Authority::new("c2");
        let own = ca.issue(Leaf::default());
        let pair = ca.server(&["gw.c2.example", "shop.example"]);
        let directory = tempfile::tempdir().unwrap();
        files(
            directory.path(),
            &[
                ("ca.pem", &ca.pem()),
                ("server.pem", &pair.chain),
                ("server.key", &pair.key),
                ("own.pem", &own.chain),
                ("own.key", &own.key),
            ],
        );
        Self {
            ca,
            own,
            site: Site::new("W"),
            directory,
        }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Returns the `tls` field of a server in this mode.
    fn tls(&self, mode: &str) -> String {
        format!(
            "{{mode: {mode}, serverCertificate: {}, privateKey: {}, caCertificates: {}}}",
            self.path("server.pem"),
            self.path("server.key"),
            self.path("ca.pem")
        )
    }

    /// Starts the gateway with these servers; it exports ns1/web below /c2/web.
    fn start(&self, start: Start, servers: &[String], more: &str) -> Proxy {
        let all = [
            tls::gateway(servers),
            service().to_owned(),
            slice(0, "", self.site.address()),
            "apiVersion: flomesh.io/v1alpha1\nkind: ServiceExport\nmetadata: {namespace: ns1, name: web}\n\
             spec: {rules: [{portNumber: 80, path: /c2/web, pathType: Prefix}], \
             pathRewrite: {from: '^/c2/web/?', to: '/'}}\n"
                .to_owned(),
            more.to_owned(),
        ];
        start
            .args(["--cluster", "c2"])
            .file(
                "mesh.yaml",
                documents(all.iter().filter(|text| !text.is_empty())),
            )
            .start()
    }
}

fn service() -> &'static str {
    "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\nspec: {ports: [{name: http, port: 80}]}\n"
}

/// Starts a gateway of c1 that connects to the gateway of c2 with TLS in this mode.
fn caller(entrance: &Entrance, at: SocketAddr, mode: &str) -> Proxy {
    let shows = match mode {
        "MUTUAL" => format!(
            ", clientCertificate: {}, privateKey: {}",
            entrance.path("own.pem"),
            entrance.path("own.key")
        ),
        _ => String::new(),
    };
    let told = format!(
        "clusters:\n- key: default/default/default/c2\n  gateway: {{host: 10.2.0.9, port: 443, \
         tls: {{mode: {mode}, sni: gw.c2.example, caCertificates: {}{shows}}}}}\n",
        entrance.path("ca.pem")
    );
    std::fs::write(entrance.path("clusters.yaml"), told).unwrap();
    let start = Start::new();
    let import = format!(
        "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
         spec: {{ports: [{{name: http, port: 80, endpoints: [{{clusterKey: default/default/default/c2, \
         target: {{host: '', ip: {}, port: {}, path: /c2/web}}}}]}}]}}\n",
        at.ip(),
        at.port()
    );
    let all = [
        gateway(&[start.edge()]),
        routes(
            "all",
            "['*']",
            "- {retries: {attempts: 0}, route: [{destination: {host: web.ns1.svc.clusterset.local, port: {number: 80}}}]}",
        ),
        service().to_owned(),
        import,
    ];
    start
        .args(["--cluster", "c1", "--clusters"])
        .args([entrance.path("clusters.yaml")])
        .file("mesh.yaml", documents(all))
        .start()
}

#[test]
fn a_gateway_serves_remote_clusters_over_mutual_tls() {
    let entrance = Entrance::new();
    let start = Start::new();
    let server = tls::server(
        start.edge(),
        "https",
        "[gw.c2.example]",
        &entrance.tls("MUTUAL"),
    );
    let of_c2 = entrance.start(start, &[server], "");
    let with = |mode: &str| {
        let proxy = caller(&entrance, of_c2.edge, mode);
        let mut client = Raw::connect(proxy.edge);
        who(&ask(
            &mut client,
            "GET /items?page=2 HTTP/1.1\r\nHost: web.ns1\r\n\r\n",
        ))
    };
    assert_eq!(with("SIMPLE"), "503", "c2 wants to know who asks");
    assert!(entrance.site.paths().is_empty());
    assert_eq!(with("MUTUAL"), "W");
    let seen = entrance.site.origin.seen();
    let [seen] = &*seen else { panic!("{seen:?}") };
    assert_eq!((seen.path(), seen.host()), ("/items?page=2", "web.ns1"));
}

#[tokio::test]
async fn exported_routes_come_after_hosts_of_their_server_and_before_hosts_of_others() {
    let entrance = Entrance::new();
    let start = Start::new();
    let servers = [("gw", "[gw.c2.example]"), ("shop", "[shop.example]")]
        .map(|(name, hosts)| tls::server(start.edge(), name, hosts, &entrance.tls("SIMPLE")));
    let own = routes(
        "own",
        "[gw.c2.example, shop.example]",
        "- {match: [{uri: {prefix: /c2/web/own}}], directResponse: {status: 204}}\n\
         - {match: [{uri: {prefix: /only}}], directResponse: {status: 204}}",
    );
    let proxy = entrance.start(start, &servers, &own);
    let visitor = Visitor::new(proxy.edge, &entrance.ca).with(&entrance.own);
    for (front, host, path, expected) in [
        (Front::H2, "web.ns1.svc.clusterset.local", "/c2/web/x", 200),
        (Front::H2, "web.ns1.svc.clusterset.local", "/c2/webx", 404),
        (Front::H2, "gw.c2.example", "/c2/web/x", 200),
        (Front::H2, "gw.c2.example", "/c2/web/own", 204),
        (Front::H2, "shop.example", "/c2/web/own", 200),
        (Front::H2, "shop.example", "/only", 421),
        (Front::H1, "shop.example", "/c2/web/own", 200),
        (Front::H1, "shop.example", "/only", 404),
    ] {
        let mut client = visitor.client(front, "gw.c2.example").await.unwrap();
        let answer = client.call(get(host, path)).await;
        assert_eq!(answer.status, expected, "{front:?} {host}{path}");
    }
}

#[tokio::test]
async fn the_servers_for_remote_clusters_can_be_selected_by_name() {
    let entrance = Entrance::new();
    let run = async |wanted: &dyn Fn(SocketAddr) -> String| {
        let (start, plain) = (Start::new(), free_address());
        let servers = [
            tls::server(start.edge(), "mesh", "['*']", &entrance.tls("SIMPLE")),
            format!(
                "  - {{port: {{number: {}, name: public, protocol: HTTP}}, bind: {}, hosts: ['*']}}\n",
                plain.port(),
                plain.ip()
            ),
        ];
        let wanted = wanted(plain);
        let start = start.args(wanted.split_whitespace());
        let proxy = entrance.start(start, &servers, "");
        let visitor = Visitor::new(proxy.edge, &entrance.ca);
        let mut client = visitor.client(Front::H1, "gw.c2.example").await.unwrap();
        let in_tls = client.call(get("web.ns1", "/c2/web/")).await.status;
        let mut client = Raw::connect(plain);
        let request = "GET /c2/web/ HTTP/1.1\r\nHost: web.ns1\r\n\r\n";
        (in_tls, ask(&mut client, request).status)
    };
    assert_eq!(run(&|_| String::new()).await, (200, 200));
    let by_name = |_| "--export-listener mesh".to_owned();
    assert_eq!(run(&by_name).await, (200, 404));
    let by_port = |plain: SocketAddr| format!("--export-listener {}", plain.port());
    assert_eq!(run(&by_port).await, (404, 200));
    let both = |plain: SocketAddr| format!("--export-listener {},mesh", plain.port());
    assert_eq!(run(&both).await, (200, 200));
}
