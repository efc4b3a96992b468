//! Changes of the remote clusters file while the proxy runs.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use super::hops::{HOST, Mesh, caller_with};
use super::remote_clusters::{import, proxy as importer};
use super::*;
use crate::support::pki::Authority;
use crate::support::tls::files;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};

/// Maximum time until a change is in effect.
const IN_FORCE: Duration = Duration::from_secs(1);

/// Number of address changes of the gateway under traffic.
const MOVES: usize = 20;

/// Remote clusters file, in a directory of its own.
struct Told {
    directory: tempfile::TempDir,
}

impl Told {
    fn new(text: &str) -> Self {
        let told = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        told.write(text);
        told
    }

    /// Replaces the file atomically, by a rename.
    fn write(&self, text: &str) {
        let draft = self.directory.path().join(".draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, self.path()).unwrap();
    }

    fn path(&self) -> String {
        self.directory
            .path()
            .join("told.yaml")
            .display()
            .to_string()
    }
}

/// Returns the entry of c2 in the remote clusters file: its gateway, and additional fields of the gateway.
fn c2(gateway: SocketAddr, more: &str) -> String {
    let (ip, port) = (gateway.ip(), gateway.port());
    format!(
        "clusters:\n- key: default/default/default/c2\n  gateway:\n    host: {ip}\n    port: {port}\n{more}"
    )
}

/// Waits until responses match, at most as long as a change may take.
#[track_caller]
fn in_force(what: &str, mut holds: impl FnMut() -> bool) {
    let changed = Instant::now();
    eventually(what, &mut holds);
    assert!(changed.elapsed() < IN_FORCE, "{:?}", changed.elapsed());
}

/// Starts a workload behind a gateway of c2 from the file. It answers with `name`, the name of the gateway.
fn behind(mesh: &Mesh, name: &'static str) -> TlsOrigin {
    let pair = mesh.ca.server(&["spiffe://cluster.local/ns/ns1/sa/web"]);
    let terms = Terms::new(&pair).for_clients_of(&mesh.ca);
    TlsOrigin::serving(Speaks::H2, &terms, move |_| async move {
        Ok(Response::new(full(name)))
    })
}

/// Starts a gateway of c1 that reaches ns1/web in c2 through the gateway in the file.
fn proxy(mesh: &Mesh, told: &Told) -> Proxy {
    let unreachable = "192.0.2.1:8080".parse().unwrap();
    let web = web_in_c2(&[(unreachable, "v1")], false);
    caller_with(mesh, HOST, &[web], &["--clusters", &told.path()])
}

fn answers(proxy: &Proxy, who: &str) -> bool {
    count(proxy, 5).keys().eq([who])
}

#[test]
fn a_changed_gateway_address_fails_no_request() {
    let mesh = Mesh::new();
    let (one, two) = (behind(&mesh, "one"), behind(&mesh, "two"));
    let told = Told::new(&c2(one.address, ""));
    let proxy = proxy(&mesh, &told);
    assert!(answers(&proxy, "one"));
    let done = AtomicBool::new(false);
    let failed = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut failed = 0;
            while !done.load(Ordering::Relaxed) {
                let counts = count(&proxy, 100);
                failed += counts.keys().filter(|who| who.starts_with('5')).count();
            }
            failed
        });
        for number in 1..=MOVES {
            let (at, who) = [(one.address, "one"), (two.address, "two")][number % 2];
            told.write(&c2(at, ""));
            in_force("the gateway has moved", || answers(&proxy, who));
        }
        done.store(true, Ordering::Relaxed);
        client.join().unwrap()
    });
    assert_eq!(failed, 0);
}

#[test]
fn an_invalid_remote_clusters_file_keeps_the_last_good_version() {
    let mesh = Mesh::new();
    let (one, two) = (behind(&mesh, "one"), behind(&mesh, "two"));
    let told = Told::new(&c2(one.address, ""));
    let proxy = proxy(&mesh, &told);
    let held = || {
        proxy.metric(
            "strait_config_resources_rejected",
            &[("kind", "RemoteClustersFile")],
        ) as u32
    };
    assert_eq!(held(), 0);
    for (breaking, code) in [
        (Some(c2(two.address, "  gatewey: {}\n")), ":6:3: CM021"),
        (None, ": SRC001: the file of --clusters is gone"),
    ] {
        match &breaking {
            Some(text) => told.write(text),
            None => std::fs::remove_file(told.path()).unwrap(),
        }
        let line = format!("{}{code}", told.path());
        in_force("the mistake is logged", || proxy.stderr().contains(&line));
        assert_eq!(held(), 1);
        assert!(answers(&proxy, "one"));
        proxy.has_logged("its last good version stays in effect");
        let page = proxy.page("/");
        assert!(
            page.contains(&format!("--clusters {}", told.path())),
            "{page}"
        );
    }
    told.write(&c2(two.address, ""));
    in_force("it is fixed", || answers(&proxy, "two"));
    eventually("nothing is wrong any more", || held() == 0);
    let dump = proxy.page("/config_dump");
    let known = format!("\"port\": {}", two.address.port());
    assert!(dump.contains(&known), "{known} in {dump}");
    told.write("clusters: []\n");
    in_force("no gateway is known", || answers(&proxy, "503"));
    told.write(&c2(one.address, ""));
    in_force("it is known again", || answers(&proxy, "one"));
}

#[test]
fn a_remote_clusters_file_in_a_config_map_is_reloaded() {
    let mesh = Mesh::new();
    let (one, two) = (behind(&mesh, "one"), behind(&mesh, "two"));
    let told = Told::new(&c2(one.address, ""));
    let directory = told.directory.path();
    // as Kubernetes mounts it: versions in directories, and links that lead to the current one
    let version = |name: &str, text: &str| {
        std::fs::create_dir(directory.join(name)).unwrap();
        std::fs::write(directory.join(name).join("told.yaml"), text).unwrap();
        symlink(name, directory.join("..data_tmp")).unwrap();
        std::fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
    };
    std::fs::remove_file(told.path()).unwrap();
    version("..1", &c2(one.address, ""));
    symlink("..data/told.yaml", told.path()).unwrap();
    let proxy = proxy(&mesh, &told);
    assert!(answers(&proxy, "one"));
    version("..2", &c2(two.address, ""));
    in_force("the new version", || answers(&proxy, "two"));
}

/// Returns the `tls` field of a gateway that requests no client certificate.
fn simple(directory: &Path, authorities: &str, more: &str) -> String {
    let path = directory.join(authorities).display().to_string();
    format!("    tls:\n      mode: SIMPLE\n      caCertificates: {path}\n{more}")
}

#[test]
fn changed_tls_in_the_remote_clusters_file_applies_to_gateways() {
    let ca = Authority::new("c2");
    let directory = tempfile::tempdir().unwrap();
    files(directory.path(), &[("ca.pem", &ca.pem())]);
    let pair = ca.server(&["gw.c2.example"]);
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&pair));
    let any = "10.2.0.9:443".parse().unwrap();
    let told = Told::new(&c2(any, ""));
    let resources = [import(origin.address, "gw.c2.example")];
    let proxy = importer(&resources, &["--clusters", &told.path()]);
    let is = |status: u16| Raw::connect(proxy.edge).send(GET).reply().status == status;
    assert!(!is(200), "plain text is no TLS");
    told.write(&c2(any, &simple(directory.path(), "ca.pem", "")));
    in_force("TLS is spoken", || is(200));
    let other = simple(directory.path(), "ca.pem", "      sni: other.example\n");
    told.write(&c2(any, &other));
    in_force("another name is asked for", || is(503));
    told.write(&c2(any, &simple(directory.path(), "late.pem", "")));
    let missing = format!(
        "{}:8:1: TLS001 clusters[0].gateway.tls.caCertificates",
        told.path()
    );
    in_force("the missing file is logged", || {
        proxy.stderr().contains(&missing)
    });
    assert!(is(503));
    files(directory.path(), &[("late.pem", &ca.pem())]);
    eventually("the file is followed", || is(200));
    told.write("clusters: []\n");
    in_force("nothing is known of c2", || !is(200));
}
