//! Round trip: the written YAML has the same meaning when it is parsed again.

use std::time::Duration;

use config_loader::resource::Line;
use config_loader::resource::core::Protocol;
use config_loader::resource::flomesh::{ClusterKey, ImportEndpoint};
use config_loader::{Diagnostics, Name, load_bytes};
use proptest::prelude::*;

use super::*;

fn label() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]([-a-z0-9]{0,8}[a-z0-9])?",
        // words that YAML readers may take for booleans, nulls or numbers
        prop::sample::select(vec!["y", "no", "null", "true", "on", "e1", "x0"])
            .prop_map(str::to_owned),
    ]
}

/// Generates a prefix as in a checked import: a plain path without a trailing slash.
fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "(/[a-z0-9._~-]{1,4}){1,3}",
        "/[!\"$-.0->@-~]{1,12}",
        "/\\PC{1,6}".prop_filter("a path without a slash at the end", |text| {
            !text.ends_with('/') && !text.contains([' ', '?', '#'])
        }),
        Just("/:'\"\\{}[]&*!|>%@`,-\u{85}\u{2028}\u{feff}é😀tab".to_owned()),
    ]
}

fn endpoint() -> impl Strategy<Value = ImportEndpoint> {
    let address = prop_oneof![
        any::<u32>().prop_map(|ip| (Host::Ip(std::net::Ipv4Addr::from(ip).into()), None)),
        any::<u128>().prop_map(|ip| (Host::Ip(std::net::Ipv6Addr::from(ip).into()), None)),
        label().prop_map(|name| {
            let name: std::sync::Arc<str> = format!("{name}.example").into();
            (Host::Dns(name.clone()), Some(name))
        }),
    ];
    let key = "[A-Za-z0-9._-]{1,5}(/[A-Za-z0-9._-]{1,5}){3}";
    let parts = (key, address, 1..=u16::MAX, path());
    parts.prop_map(|(key, (address, server_name), port, path)| ImportEndpoint {
        cluster: ClusterKey::parse(&key).unwrap(),
        target: ImportTarget {
            address,
            server_name,
            port,
            path_prefix: path.into(),
        },
        line: Line::default(),
    })
}

fn ports() -> impl Strategy<Value = Vec<ImportPort>> {
    let port = (
        prop::option::of("[a-z.:/ ]{1,10}"),
        prop::collection::vec(endpoint(), 0..3),
    );
    let named = prop::collection::btree_map(label(), port, 1..4);
    named.prop_map(|ports| {
        let each = ports.into_iter().zip(80..);
        each.map(|((name, (speaks, endpoints)), port)| ImportPort {
            name: name.into(),
            port,
            protocol: Protocol::Tcp,
            app_protocol: speaks.map(Into::into),
            endpoints,
            line: Line::default(),
        })
        .collect()
    })
}

fn spec() -> impl Strategy<Value = ServiceImport> {
    let account = prop::option::of(prop_oneof![
        Just(ServiceAccount::Any),
        label().prop_map(|name| ServiceAccount::Named(name.into())),
    ]);
    let affinity = prop_oneof![
        Just(SessionAffinity::None),
        (1..86_400_u64).prop_map(|seconds| SessionAffinity::ClientIp {
            timeout: Duration::from_secs(seconds)
        }),
    ];
    (ports(), account, affinity, any::<Option<IpAddr>>()).prop_map(
        |(ports, service_account, session_affinity, vip)| ServiceImport {
            ports,
            service_account,
            session_affinity,
            vips: vip.into_iter().collect(),
            ..ServiceImport::default()
        },
    )
}

/// Renders an import without the line numbers of its text.
fn said(spec: &ServiceImport) -> String {
    let mut spec = spec.clone();
    for port in &mut spec.ports {
        port.line = Line::default();
        for endpoint in &mut port.endpoints {
            endpoint.line = Line::default();
        }
    }
    format!("{spec:?}")
}

proptest! {
    #[test]
    fn written_yaml_parses_to_the_same_values(specs in prop::collection::btree_map(label(), spec(), 0..4)) {
        let import = |(name, spec): (String, ServiceImport)| Import {
            name: Name::new("ns1", name),
            group: "flomesh.io",
            spec,
        };
        let imports: Vec<Import> = specs.into_iter().map(import).collect();
        let text = documents(&imports);
        let mut found = Diagnostics::default();
        let read = load_bytes("imports.yaml", text.as_bytes(), &mut found);
        prop_assert!(!found.has_errors(), "{:?}\n{}", found, text);
        let read: Vec<_> = read.service_imports.iter().map(|(name, read)| (name.clone(), said(&read.spec))).collect();
        let meant: Vec<_> = imports.iter().map(|import| (import.name.clone(), said(&import.spec))).collect();
        prop_assert_eq!(read, meant, "{}", text);
        for import in &imports {
            let text = config_loader::imports::object(import).to_string();
            let read = load_bytes("import.json", text.as_bytes(), &mut found);
            let read = read.service_imports.iter().map(|(_, read)| said(&read.spec));
            prop_assert_eq!(read.collect::<Vec<_>>(), [said(&import.spec)], "{}", text);
        }
    }
}
