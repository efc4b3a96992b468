//! Remote clusters file: `--clusters FILE`. Every mistake is a diagnostic with its location. One error rejects the
//! whole file.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::diagnostic::codes::common::CM017;
use crate::diagnostic::codes::multicluster::{
    CLS001, CLS002, CLS003, CLS004, CLS005, CLS006, CLS007,
};
use crate::options::RemoteCluster;
use crate::raw::Field;
use crate::resource::flomesh::ClusterKey;
use crate::settings_file::{self, Parsed, SettingsFile};
use crate::span::{Lines, Span};
use crate::validate::{Check, api, scalar};

/// Settings of one remote cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Full name of the cluster.
    pub key: ClusterKey,
    /// Network of the cluster's endpoints; empty if not set.
    pub network: Arc<str>,
    /// Default locality (`region/zone/subzone`) of endpoints without one; empty if not set.
    pub locality: Arc<str>,
    /// Trust domain of the cluster's workloads; `None` for that of the proxy.
    pub trust_domain: Option<Arc<str>>,
    /// Gateway of the cluster.
    pub gateway: Option<GatewaySettings>,
}

impl From<&ClusterSettings> for RemoteCluster {
    fn from(told: &ClusterSettings) -> Self {
        Self {
            key: told.key.clone(),
            has_gateway: told.gateway.is_some(),
        }
    }
}

/// Gateway of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewaySettings {
    /// IP address or DNS name of the gateway.
    pub host: Arc<str>,
    /// Port of the gateway.
    pub port: u16,
    /// TLS settings towards the gateway; `None` for plain text.
    pub tls: Option<GatewayTlsSettings>,
}

/// TLS towards a gateway. File paths are kept as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayTlsSettings {
    /// Server name (SNI), which is also verified; `None` for the gateway's host.
    pub sni: Option<Arc<str>>,
    /// File of the CA certificates; `None` for the certificate authorities of the operating system.
    pub ca_certificates: Option<Arc<str>>,
    /// Files of the client certificate and its key, for mode `MUTUAL`.
    pub client: Option<(Arc<str>, Arc<str>)>,
    /// Location of the `tls` mapping in the file.
    pub location: GatewayTlsLocation,
}

/// Location of a gateway's `tls` mapping, for diagnostics about the certificate files that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayTlsLocation {
    /// Remote clusters file.
    pub file: Arc<str>,
    /// Field path, such as `clusters[0].gateway.tls`.
    pub path: Arc<str>,
    /// Line number, counted from 1.
    pub line: u32,
    /// Fields that name files, each with its line.
    pub fields: Vec<(Arc<str>, u32)>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    clusters: Field<Vec<Field<Cluster>>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Cluster {
    key: Field<String>,
    network: Field<String>,
    locality: Field<String>,
    trust_domain: Field<String>,
    gateway: Field<Gateway>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Gateway {
    host: Field<String>,
    port: Field<i64>,
    tls: Field<Tls>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tls {
    mode: Field<String>,
    sni: Field<String>,
    ca_certificates: Field<String>,
    client_certificate: Field<String>,
    private_key: Field<String>,
}

/// TLS mode towards a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Disable,
    Mutual,
    Simple,
}

const MODES: [(&str, Mode); 3] = [
    ("DISABLE", Mode::Disable),
    ("MUTUAL", Mode::Mutual),
    ("SIMPLE", Mode::Simple),
];

impl SettingsFile for Vec<ClusterSettings> {
    const FLAG: &'static str = "--clusters";

    const EMPTY: &'static str = "to know nothing of other clusters, write `clusters: []`";

    fn parse(file: &Arc<str>, text: &str) -> Parsed<Self> {
        let lines = Lines::new(text);
        let locator = settings_file::whole(file, text, &lines);
        settings_file::parse_text(locator, &[], |raw: &File, _, check| {
            all(&raw.clusters, check)
        })
    }
}

fn all(field: &Field<Vec<Field<Cluster>>>, check: &mut Check<'_>) -> Vec<ClusterSettings> {
    let mut seen: HashMap<String, Span> = HashMap::new();
    let mut clusters = Vec::new();
    for (index, (entry, raw)) in scalar::items(field, check).into_iter().enumerate() {
        if !raw.key.is_set() {
            api::required(entry.span(), "key", "", CLS001, check)
                .help("write the key of the cluster: region/zone/group/name");
        }
        let key = api::cluster_key(&raw.key, CLS001, check);
        if let Some(text) = raw.key.get() {
            match seen.get(text) {
                Some(first) => api::duplicate(text, raw.key.span(), *first, CLS002, check),
                None => _ = seen.insert(text.clone(), raw.key.span()),
            }
        }
        let gateway = raw
            .gateway
            .get()
            .and_then(|gateway| self::gateway(gateway, index, raw.gateway.span(), check));
        if api::text(&raw.locality).split('/').count() > 3 {
            let message = "must be region/zone/subzone, or the first parts of it";
            api::invalid(&raw.locality, message, CLS005, check);
        }
        let trust_domain = api::some_text(&raw.trust_domain);
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
        if trust_domain
            .as_ref()
            .is_some_and(|domain| !domain.bytes().all(is_plain))
        {
            let message = "must be a trust domain in lower case, without `spiffe://`";
            api::invalid(&raw.trust_domain, message, CLS007, check);
        }
        clusters.extend(key.map(|key| ClusterSettings {
            key,
            network: api::text(&raw.network),
            locality: api::text(&raw.locality),
            trust_domain,
            gateway,
        }));
    }
    clusters
}

fn gateway(
    raw: &Gateway,
    index: usize,
    span: Span,
    check: &mut Check<'_>,
) -> Option<GatewaySettings> {
    api::require_text(&raw.host, span, "host", CLS003, check);
    let host = api::some_text(&raw.host);
    if let Some(host) = &host
        && scalar::ip(host).is_none()
        && !scalar::is_fqdn(host)
    {
        api::invalid(
            &raw.host,
            "must be an IP address or a DNS name",
            CLS003,
            check,
        )
        .help("write the address of the gateway, without a port");
    }
    let port = api::required_port(&raw.port, span, "port", CLS003, check);
    let tls = raw
        .tls
        .get()
        .and_then(|tls| self::tls(tls, index, raw.tls.span(), check));
    Some(GatewaySettings {
        host: host?,
        port: port?,
        tls,
    })
}

fn tls(raw: &Tls, index: usize, span: Span, check: &mut Check<'_>) -> Option<GatewayTlsSettings> {
    if !raw.mode.is_set() {
        api::required(span, "mode", "", CM017, check).help("write SIMPLE, MUTUAL or DISABLE");
    }
    let mode = api::enum_of(&raw.mode, &MODES, check)?;
    let pair = [
        ("clientCertificate", &raw.client_certificate),
        ("privateKey", &raw.private_key),
    ];
    for (name, field) in pair {
        if mode == Mode::Mutual {
            api::require_text(field, span, name, CLS004, check);
        } else if field.is_set() {
            let message = format!("`{name}` is shown with mode MUTUAL only");
            check
                .error(CLS004, field.span(), message)
                .help("write `mode: MUTUAL`, or leave it out");
        }
    }
    if let Some(sni) = api::some_text(&raw.sni)
        && !scalar::is_fqdn(&sni)
    {
        api::invalid(&raw.sni, "must be a DNS name", CLS006, check)
            .help("write the name that the gateway's certificate is for");
    }
    let client = api::some_text(&raw.client_certificate).zip(api::some_text(&raw.private_key));
    (mode != Mode::Disable).then(|| GatewayTlsSettings {
        sni: api::some_text(&raw.sni),
        ca_certificates: api::some_text(&raw.ca_certificates),
        client,
        location: tls_place(raw, index, span, check),
    })
}

fn tls_place(raw: &Tls, index: usize, span: Span, check: &Check<'_>) -> GatewayTlsLocation {
    let fields = [
        ("caCertificates", &raw.ca_certificates),
        ("clientCertificate", &raw.client_certificate),
        ("privateKey", &raw.private_key),
    ];
    let written = fields.iter().filter(|(_, field)| field.is_set());
    let at = check.location(span);
    GatewayTlsLocation {
        file: at.file,
        path: format!("clusters[{index}].gateway.tls").into(),
        line: at.line,
        fields: written
            .map(|(name, field)| (Arc::from(*name), check.location(field.span()).line))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<ClusterSettings>, Vec<String>> {
        let read = Vec::<ClusterSettings>::parse(&"clusters.yaml".into(), text);
        let read = read.map(|(clusters, _)| clusters);
        read.map_err(|found| {
            let line = |one: &crate::Diagnostic| {
                format!(
                    "{}:{} {} {}: {}",
                    one.location.line, one.location.column, one.code, one.field, one.message
                )
            };
            found.iter().map(line).collect()
        })
    }

    #[test]
    fn remote_clusters_file_is_parsed() {
        let text = "clusters:\n\
            - key: eu/a/b/c2\n  network: n2\n  locality: eu/a/rack-1\n\
            \x20 gateway:\n    host: gw.c2.example\n    port: 443\n\
            \x20   tls: {mode: MUTUAL, sni: c2.example, caCertificates: ca.pem, clientCertificate: c.pem, privateKey: c.key}\n\
            - key: default/default/default/c3\n  gateway: {host: 10.3.0.1, port: 80, tls: {mode: DISABLE}}\n";
        let read = read(text).unwrap();
        let [c2, c3] = &*read else { panic!("{read:?}") };
        assert_eq!(
            (c2.key.as_str(), &*c2.network, &*c2.locality),
            ("eu/a/b/c2", "n2", "eu/a/rack-1")
        );
        let gateway = c2.gateway.clone().unwrap();
        assert_eq!((&*gateway.host, gateway.port), ("gw.c2.example", 443));
        let tls = gateway.tls.unwrap();
        assert_eq!(tls.sni.as_deref(), Some("c2.example"));
        assert_eq!(tls.client, Some(("c.pem".into(), "c.key".into())));
        let location = tls.location;
        assert_eq!(
            (&*location.file, &*location.path, location.line),
            ("clusters.yaml", "clusters[0].gateway.tls", 8)
        );
        assert_eq!(location.fields[2], ("privateKey".into(), 8));
        assert_eq!(
            c3.gateway.as_ref().map(|gateway| gateway.tls.is_none()),
            Some(true)
        );
    }

    #[test]
    fn every_mistake_is_reported_with_its_location() {
        let text = "clusters:\n\
            - key: c2\n  gatway: {}\n\
            - {key: a/b/c/d, gateway: {host: 'a b', port: 0}}\n\
            - {key: a/b/c/d, gateway: {host: a, port: 1, tls: {mode: SIMPLE, privateKey: x}}}\n\
            - {gateway: {host: a, port: 1, tls: {mode: MUTUAL, clientCertificate: x}}}\n";
        let found = read(text).unwrap_err();
        let codes: Vec<&str> = found
            .iter()
            .map(|one| one.split(": ").next().unwrap())
            .collect();
        for expected in [
            "CLS001 clusters[0].key",
            "CM021 clusters[0].gatway",
            "CLS003 clusters[1].gateway.host",
            "CM016 clusters[1].gateway.port",
            "CLS002 clusters[2].key",
            "CLS004 clusters[2].gateway.tls.privateKey",
            "CLS001 clusters[3].key",
            "CLS004 clusters[3].gateway.tls.privateKey",
        ] {
            let is_it = |one: &&str| one.ends_with(expected);
            assert!(codes.iter().any(is_it), "{expected} in {found:#?}");
        }
        assert_eq!(codes.len(), 8, "{found:#?}");
        let text = "clusters:\n- {key: a/b/c/d, locality: a/b/c/d, trustDomain: C2.test, gateway: {host: a, port: 1, tls: {mode: SIMPLE, sni: 'b c'}}}\n";
        let places: Vec<String> = read(text).unwrap_err();
        let places: Vec<&str> = places
            .iter()
            .filter_map(|one| one.split(": ").next())
            .collect();
        let expected = [
            "2:28 CLS005 clusters[0].locality",
            "2:50 CLS007 clusters[0].trustDomain",
            "2:112 CLS006 clusters[0].gateway.tls.sni",
        ];
        assert!(
            expected.iter().all(|one| places.contains(one)),
            "{places:?}"
        );
        assert_eq!(places.len(), 3);
        let list = read("- {key: a/b/c/d}\n").unwrap_err();
        assert_eq!(list.len(), 1, "{list:?}");
        assert!(
            list[0].contains("CM022") && list[0].contains("expected a mapping"),
            "{list:?}"
        );
    }
}
