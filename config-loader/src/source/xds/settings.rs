//! Settings of xDS servers, and the identity that the proxy sends to them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use prost_types::value::Kind;
use prost_types::{Struct, Value};

use crate::source::state::StateFile;
use crate::source::stream::report::Origin;
use crate::xds::{Node, NodeLocality};
use grpc_client::ClientTlsFiles;

/// URL scheme of a server with TLS.
const SCHEME: &str = "xds://";

/// URL scheme of a server without TLS.
const PLAINTEXT_SCHEME: &str = "xds+plaintext://";

/// Settings of xDS servers, and the identity that the proxy sends to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdsSettings {
    /// xDS servers.
    pub servers: Vec<XdsServer>,
    /// TLS settings of the client. The files are read for each connection.
    pub tls: ClientTlsFiles,
    /// File with the bearer token. It is read for each connection, and sent only with TLS or to a loopback address.
    pub token: Option<PathBuf>,
    /// Identity of the proxy.
    pub node: XdsNode,
    /// Namespaces that are read; empty for all.
    pub namespaces: Vec<String>,
    /// Namespace whose Secrets are read. Empty for none.
    pub secrets_namespace: String,
    /// Whether Pods, Nodes and Namespaces are read to identify the workload of an endpoint (`--control-workloads`).
    pub reads_workloads: bool,
}

impl XdsSettings {
    /// Returns the servers' names in messages.
    pub(in crate::source) fn origins(&self) -> impl Iterator<Item = Origin> {
        self.servers.iter().map(|server| Origin {
            name: server.name(),
            title: "xDS server",
            is_remote: false,
        })
    }

    /// Returns the files of the saved states.
    pub(in crate::source) fn state_files(
        &self,
        directory: &Path,
    ) -> impl Iterator<Item = StateFile> {
        self.servers.iter().map(|server| {
            let name = server.name();
            StateFile::new(directory, &name, name.clone())
        })
    }
}

/// xDS server: `xds://HOST:PORT`, or `xds+plaintext://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdsServer {
    /// Host name or address; an IPv6 address has no brackets.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// Whether the connection uses TLS.
    pub has_tls: bool,
}

impl XdsServer {
    /// Returns the URL: the name in messages, and the prefix of its documents' names.
    pub fn name(&self) -> String {
        let scheme = match self.has_tls {
            true => SCHEME,
            false => PLAINTEXT_SCHEME,
        };
        match self.host.contains(':') {
            true => format!("{scheme}[{}]:{}", self.host, self.port),
            false => format!("{scheme}{}:{}", self.host, self.port),
        }
    }

    /// Whether the host is a loopback address or `localhost`.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        address.map_or(self.host == "localhost", |address| address.is_loopback())
    }
}

impl FromStr for XdsServer {
    type Err = String;

    fn from_str(text: &str) -> Result<XdsServer, String> {
        let wrong = || {
            format!(
                "`{text}` is no xDS server: write `{SCHEME}HOST:PORT`, or `{PLAINTEXT_SCHEME}HOST:PORT` for one without TLS"
            )
        };
        let (rest, has_tls) = match text.strip_prefix(SCHEME) {
            Some(rest) => (rest, true),
            None => (
                text.strip_prefix(PLAINTEXT_SCHEME).ok_or_else(wrong)?,
                false,
            ),
        };
        let authority: http::uri::Authority = rest.parse().map_err(|_| wrong())?;
        let host = authority.host();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || rest.contains('@') {
            return Err(wrong());
        }
        Ok(XdsServer {
            host: host.to_owned(),
            port: authority.port_u16().ok_or_else(wrong)?,
            has_tls,
        })
    }
}

/// Identity of the proxy, with the fields that Istio's control plane reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdsNode {
    /// Whether the proxy is a sidecar; otherwise it is a gateway.
    pub is_sidecar: bool,
    /// Name of the pod or the machine.
    pub name: String,
    /// IP address of the proxy.
    pub address: String,
    /// Namespace of the workload.
    pub namespace: String,
    /// DNS domain of the mesh.
    pub domain: String,
    /// Labels of the workload.
    pub labels: BTreeMap<String, String>,
    /// Name of the proxy's Kubernetes cluster.
    pub cluster: String,
    /// Network of the proxy.
    pub network: String,
    /// Service account of the workload.
    pub service_account: String,
    /// Region, zone and sub-zone.
    pub locality: [String; 3],
    /// Version of the proxy.
    pub version: String,
}

impl XdsNode {
    /// Returns the node of the first request on a stream.
    pub(super) fn message(&self) -> Node {
        let kind = if self.is_sidecar { "sidecar" } else { "router" };
        let (name, namespace) = (&self.name, &self.namespace);
        let [region, zone, sub_zone] = self.locality.clone();
        Node {
            id: format!(
                "{kind}~{}~{name}.{namespace}~{namespace}.svc.{}",
                self.address, self.domain
            ),
            cluster: self.labels.get("app").unwrap_or(name).clone(),
            metadata: Some(self.metadata()),
            locality: Some(NodeLocality {
                region,
                zone,
                sub_zone,
            }),
            user_agent_name: "strait".to_owned(),
            user_agent_version: self.version.clone(),
        }
    }

    /// Returns the node of a stream that istiod takes for an Envoy's, and lists in `istioctl proxy-status`.
    pub fn of_envoy(&self) -> Node {
        let mut node = self.message();
        let metadata = node.metadata.get_or_insert_default();
        metadata.fields.remove("GENERATOR");
        let version = text(&format!("strait-{}", self.version));
        metadata.fields.insert("ISTIO_VERSION".to_owned(), version);
        let config = Some(Kind::StructValue(Struct::default()));
        metadata
            .fields
            .insert("PROXY_CONFIG".to_owned(), Value { kind: config });
        node
    }

    fn metadata(&self) -> Struct {
        let labels = self.labels.iter();
        let labels = labels.map(|(key, value)| (key.clone(), text(value)));
        let labels = Struct {
            fields: labels.collect(),
        };
        let mut fields = HashMap::new();
        // With this generator Istio sends resources instead of Envoy's configuration.
        for (key, value) in [
            ("GENERATOR", "api"),
            ("NAME", &self.name),
            ("NAMESPACE", &self.namespace),
            ("CLUSTER_ID", &self.cluster),
            ("NETWORK", &self.network),
            ("SERVICE_ACCOUNT", &self.service_account),
            // Several addresses are separated by commas: istiod ends the stream for a list.
            ("INSTANCE_IPS", &self.address),
        ] {
            if !value.is_empty() {
                fields.insert(key.to_owned(), text(value));
            }
        }
        let labels = Kind::StructValue(labels);
        fields.insert("LABELS".to_owned(), Value { kind: Some(labels) });
        Struct {
            fields: fields.into_iter().collect(),
        }
    }
}

fn text(text: &str) -> Value {
    Value {
        kind: Some(Kind::StringValue(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_servers_are_read() {
        for (written, expected) in [
            (
                "xds://istiod.istio-system:15012",
                Some(("istiod.istio-system", 15012, true)),
            ),
            (
                "xds+plaintext://127.0.0.1:15010",
                Some(("127.0.0.1", 15010, false)),
            ),
            ("xds://[::1]:15012", Some(("::1", 15012, true))),
            ("xds://istiod", None),
            ("xds://:15012", None),
            ("xds://user@istiod:15012", None),
            ("xds://istiod:15012/path", None),
            ("grpc://istiod:15012", None),
        ] {
            let found = written.parse::<XdsServer>();
            match expected {
                Some((host, port, has_tls)) => {
                    let found = found.expect(written);
                    assert_eq!(
                        (&*found.host, found.port, found.has_tls),
                        (host, port, has_tls)
                    );
                    assert_eq!(found.name(), written);
                }
                None => {
                    let message = found.expect_err(written);
                    assert!(message.contains("write `xds://HOST:PORT`"), "{message}");
                }
            }
        }
    }

    #[test]
    fn node_names_the_workload_as_istio_reads_it() {
        let node = XdsNode {
            is_sidecar: true,
            name: "web-1".to_owned(),
            address: "10.0.0.7".to_owned(),
            namespace: "shop".to_owned(),
            domain: "cluster.local".to_owned(),
            labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
            cluster: "east".to_owned(),
            locality: ["eu", "eu-1", ""].map(str::to_owned),
            ..XdsNode::default()
        };
        let message = node.message();
        assert_eq!(
            message.id,
            "sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local"
        );
        assert_eq!(message.cluster, "web");
        let metadata = message.metadata.unwrap().fields;
        let value = |key: &str| metadata.get(key).cloned();
        // Istio's `NodeMetadata` has texts only, beside the labels, which are a map of texts.
        for (key, value) in &metadata {
            match value.kind.as_ref().expect("a value") {
                Kind::StructValue(labels) if key == "LABELS" => {
                    assert_eq!(labels.fields.get("app"), Some(&text("web")));
                }
                Kind::StringValue(_) => {}
                other => panic!("{key} is {other:?}"),
            }
        }
        assert_eq!(value("INSTANCE_IPS"), Some(text("10.0.0.7")));
        assert_eq!(value("GENERATOR"), Some(text("api")));
        assert_eq!(value("NAMESPACE"), Some(text("shop")));
        assert_eq!(value("CLUSTER_ID"), Some(text("east")));
        assert_eq!(value("NETWORK"), None);
        assert_eq!(message.locality.unwrap().zone, "eu-1");
        let listed = node.of_envoy().metadata.unwrap().fields;
        assert!(listed.contains_key("PROXY_CONFIG") && !listed.contains_key("GENERATOR"));
    }
}
