use std::collections::BTreeMap;
use std::path::Path;

use config_loader::{Diagnostics, load_bytes};

use super::super::{look, now};
use super::*;
use crate::compile::certificates::Scope;
use crate::control::identity_source::Delivered;
use crate::control::remote_clusters::ClustersFile;
use crate::identity::Identity as Proxy;
use crate::pki::{Authority, Leaf};

/// Writes files with every kind of mistake.
fn write_files(directory: &Path) {
    let ca = Authority::new("ca");
    let of_years = |years| {
        ca.issue(Leaf {
            names: &["a.com"],
            years,
            ..Leaf::default()
        })
    };
    let good = of_years((2020, 4000));
    let expired = of_years((2010, 2011));
    let early = of_years((3000, 4000));
    let stranger = ca.server(&["b.com"]);
    let nameless = ca.issue(Leaf::default());
    let files = [
        ("good.crt", &good.chain),
        ("good.key", &good.key),
        ("expired.crt", &expired.chain),
        ("expired.key", &expired.key),
        ("early.crt", &early.chain),
        ("early.key", &early.key),
        ("stranger.crt", &stranger.chain),
        ("stranger.key", &stranger.key),
        ("nameless.crt", &nameless.chain),
        ("nameless.key", &nameless.key),
        ("ca.pem", &ca.pem()),
        ("good.crl", &ca.revoke(&[&stranger])),
        ("stale.crl", &ca.revoke_until(&[&stranger], 2022)),
        ("garbage", &"garbage".to_owned()),
    ];
    for (name, text) in files {
        std::fs::write(directory.join(name), text).unwrap();
    }
}

/// Renders a Gateway with these settings; `DIR` means the directory of the files.
fn gateway(settings: &str, directory: &Path) -> String {
    let settings = settings.trim().replace("DIR", &directory.to_string_lossy());
    let settings = settings.replace('\n', "\n      ");
    format!(
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: edge}}\nspec:\n  servers:\n  \
         - port: {{number: 443, name: https, protocol: HTTPS}}\n    hosts: [a.com]\n    tls:\n      {settings}\n"
    )
}

/// Parses the expected findings out of comments: the line and the code.
fn wanted(text: &str) -> BTreeMap<(u32, String), String> {
    let lines = (1..).zip(text.lines());
    let wanted = lines.filter_map(|(number, line)| {
        let (before, comment) = line.split_once(" # ")?;
        let field = before.trim_start_matches([' ', '-']).split(':').next()?;
        Some(((number, comment.to_owned()), field.to_owned()))
    });
    wanted.collect()
}

fn check(settings: &str, directory: &Path) {
    let text = gateway(settings, directory);
    let mut diagnostics = Diagnostics::default();
    let resources = load_bytes("a.yaml", text.as_bytes(), &mut diagnostics);
    let errors: Vec<_> = diagnostics.iter().collect();
    assert!(!diagnostics.has_errors(), "{text}{errors:#?}");
    let store = Store::default();
    let proxy = Proxy::default();
    let found = look(
        &store,
        &resources,
        &Delivered::default(),
        Scope::Proxy(&proxy),
        now(),
    )
    .findings;
    let wanted = wanted(&text);
    let seen: Vec<(u32, String)> = found
        .iter()
        .map(|found| (found.location.line, found.code.to_string()))
        .collect();
    assert_eq!(
        seen,
        wanted.keys().cloned().collect::<Vec<_>>(),
        "{text}{found:#?}"
    );
    for (found, field) in found.iter().zip(wanted.values()) {
        assert!(found.field.starts_with("spec.servers[0].tls."), "{found:?}");
        let last = found.field.rsplit('.').next().unwrap_or_default();
        let is_of_line = last.starts_with(field.as_str()) || last.ends_with(']');
        assert!(is_of_line, "{field} {found:?}");
        assert!(found.help.is_some(), "{found:?}");
    }
}

#[test]
fn diagnostics_point_at_the_invalid_field() {
    let directory = tempfile::tempdir().unwrap();
    write_files(directory.path());
    let good = "privateKey: DIR/good.key\nserverCertificate: DIR/good.crt";
    let clients = format!("mode: MUTUAL\n{good}");
    for settings in [
        &format!("mode: SIMPLE\n{good}"),
        "mode: SIMPLE\ncredentialName: lost # TLS001",
        "mode: SIMPLE\ncredentialNames:\n- lost # TLS001\n- other # TLS001",
        "mode: MUTUAL\ncredentialName: lost # TLS001",
        "mode: SIMPLE\nprivateKey: DIR/good.key\nserverCertificate: DIR/lost # TLS001",
        "mode: SIMPLE\nserverCertificate: DIR/good.crt\nprivateKey: DIR/lost # TLS001",
        "mode: SIMPLE\ntlsCertificates:\n- serverCertificate: DIR/good.crt\n  privateKey: DIR/good.key\n\
         - serverCertificate: DIR/good.crt\n  privateKey: DIR/lost # TLS001",
        "mode: SIMPLE\nprivateKey: DIR/good.key\nserverCertificate: DIR/garbage # TLS002",
        "mode: SIMPLE\nserverCertificate: DIR/good.crt\nprivateKey: DIR/garbage # TLS003",
        "mode: SIMPLE\nserverCertificate: DIR/good.crt\nprivateKey: DIR/early.key # TLS004",
        "mode: SIMPLE\nprivateKey: DIR/expired.key\nserverCertificate: DIR/expired.crt # TLS005",
        "mode: SIMPLE\nprivateKey: DIR/early.key\nserverCertificate: DIR/early.crt # TLS006",
        "mode: SIMPLE\nprivateKey: DIR/nameless.key\nserverCertificate: DIR/nameless.crt # TLS010",
        "mode: SIMPLE\nprivateKey: DIR/stranger.key\nserverCertificate: DIR/stranger.crt # TLS011",
        &format!("mode: SIMPLE\n{good}\necdhCurves:\n- X25519\n- P-521 # TLS012"),
        "mode: SIMPLE\ncredentialName: kubernetes://other/cred # TLS013",
        &format!("{clients}\ncaCrl: DIR/good.crl\ncaCertificates: DIR/ca.pem"),
        &format!("{clients}\ncaCertificates: DIR/lost # TLS001"),
        &format!("{clients}\ncaCertCredentialName: lost # TLS001"),
        &format!("{clients}\ncaCertificates: DIR/garbage # TLS007"),
        &format!("{clients}\ncaCertificates: DIR/ca.pem\ncaCrl: DIR/lost # TLS001"),
        &format!("{clients}\ncaCertificates: DIR/ca.pem\ncaCrl: DIR/garbage # TLS008"),
        &format!("{clients}\ncaCertificates: DIR/ca.pem\ncaCrl: DIR/stale.crl # TLS009"),
        "mode: MUTUAL\ntlsCertificates:\n- serverCertificate: DIR/good.crt\n  privateKey: DIR/good.key\n  \
         caCertificates: DIR/garbage # TLS007",
    ] {
        check(settings, directory.path());
    }
}

#[test]
fn mesh_identity_need_not_name_the_hosts() {
    let directory = tempfile::tempdir().unwrap();
    let ca = Authority::new("mesh");
    let workload = ca.server(&["spiffe://cluster.local/ns/default/sa/edge"]);
    let files = [
        ("cert-chain.pem", &workload.chain),
        ("key.pem", &workload.key),
        ("root-cert.pem", &ca.pem()),
    ];
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let text = gateway("mode: ISTIO_MUTUAL", Path::new(""));
    let resources = load_bytes("a.yaml", text.as_bytes(), &mut Diagnostics::default());
    let proxy = Proxy {
        mesh_certs: directory.path().to_string_lossy().into_owned(),
        ..Proxy::default()
    };
    let looked = look(
        &Store::default(),
        &resources,
        &Delivered::default(),
        Scope::Proxy(&proxy),
        now(),
    );
    assert!(looked.findings.is_empty(), "{:?}", looked.findings);
}

#[test]
fn missing_mesh_identity_is_reported_at_the_tls_mode() {
    let text = gateway(
        "minProtocolVersion: TLSV1_3\nmode: ISTIO_MUTUAL",
        Path::new(""),
    );
    let resources = load_bytes("a.yaml", text.as_bytes(), &mut Diagnostics::default());
    let proxy = Proxy {
        mesh_certs: "/nowhere".to_owned(),
        ..Proxy::default()
    };
    let found = look(
        &Store::default(),
        &resources,
        &Delivered::default(),
        Scope::Proxy(&proxy),
        now(),
    )
    .findings;
    let seen: Vec<_> = found
        .iter()
        .map(|found| (found.code.0, found.location.line, &*found.field))
        .collect();
    let mode = ("TLS001", 10, "spec.servers[0].tls.mode");
    assert_eq!(seen, [mode, mode]);
}

#[test]
fn credential_at_a_sidecar_needs_a_selector() {
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec:\n  host: a.com\n  \
                trafficPolicy:\n    tls:\n      mode: SIMPLE\n      credentialName: cred\n";
    let selecting = format!("{rule}  workloadSelector: {{matchLabels: {{app: web}}}}\n");
    let sidecar = Proxy {
        mode: crate::identity::Mode::Sidecar,
        labels: [("app".to_owned(), "web".to_owned())].into(),
        ..Proxy::default()
    };
    for (text, proxy, expected) in [
        (rule, &sidecar, "TLS014"),
        (&*selecting, &sidecar, "TLS001"),
        (rule, &Proxy::default(), "TLS001"),
    ] {
        let mut diagnostics = Diagnostics::default();
        let resources = load_bytes("a.yaml", text.as_bytes(), &mut diagnostics);
        let found = look(
            &Store::default(),
            &resources,
            &Delivered::default(),
            Scope::Proxy(proxy),
            now(),
        )
        .findings;
        let [found] = &*found else {
            panic!("{found:#?}")
        };
        assert_eq!(found.code.to_string(), expected);
        assert_eq!(
            (found.location.line, &*found.field),
            (9, "spec.trafficPolicy.tls.credentialName")
        );
        assert!(found.help.is_some());
    }
}

#[test]
fn invalid_gateway_certificates_are_reported_in_the_remote_clusters_file() {
    let directory = tempfile::tempdir().unwrap();
    write_files(directory.path());
    let path = directory.path().join("clusters.yaml");
    let text = "clusters:\n- key: a/b/c/d\n  gateway:\n    host: gw.example\n    port: 443\n    tls:\n      \
                mode: MUTUAL\n      caCertificates: DIR/nowhere.pem\n      clientCertificate: DIR/expired.crt\n      \
                privateKey: DIR/garbage\n";
    std::fs::write(
        &path,
        text.replace("DIR", &directory.path().to_string_lossy()),
    )
    .unwrap();
    let members = ClustersFile::read(&path).unwrap().members();
    let resources = config_loader::ResourceSet::default();
    let proxy = Proxy {
        members,
        ..Proxy::default()
    };
    let found = look(
        &Store::default(),
        &resources,
        &Delivered::default(),
        Scope::Proxy(&proxy),
        now(),
    )
    .findings;
    let seen: Vec<_> = found
        .iter()
        .map(|found| (found.code.0, found.location.line, &*found.field))
        .collect();
    assert_eq!(
        seen,
        [
            ("TLS003", 10, "clusters[0].gateway.tls.privateKey"),
            ("TLS001", 8, "clusters[0].gateway.tls.caCertificates"),
        ]
    );
    assert!(
        found.iter().all(|found| {
            found.help.is_some() && *found.location.file == *path.to_string_lossy()
        })
    );
}
