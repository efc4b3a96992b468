//! Settings of Kubernetes API servers.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::kind::Kind;
use crate::resource::flomesh::ClusterKey;
use crate::source::content::Reader;
use crate::source::state::StateFile;
use crate::source::stream::report::{Key, Origin};

/// Prefix of an API server's name.
const SCHEME: &str = "kubernetes://";

/// Settings of the Kubernetes API servers that are followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubernetesSettings {
    /// API servers. Servers of the local cluster have no key.
    pub servers: Vec<ApiServer>,
    /// Path of the kubeconfig. Default: `KUBECONFIG`, then `~/.kube/config`, then the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// Resources that are read, as kind and API group; empty for all. Fewer are read from remote clusters.
    pub resources: Vec<(Kind, &'static str)>,
    /// Kinds that are not read.
    pub without: Vec<Kind>,
    /// Kinds that the proxy runs without if the credentials do not allow reading them (`--control-optional`). A Secret
    /// listed here is not reported as missing either.
    pub optional: Vec<Kind>,
    /// Namespaces that are read; empty for all.
    pub namespaces: Vec<String>,
    /// Label selector of objects to read. Services, EndpointSlices, Secrets and ConfigMaps are read in any case.
    pub selector: Option<String>,
    /// Namespace whose Secrets and ConfigMaps are read. Empty for none.
    pub secrets_namespace: String,
    /// Whether Secrets and ConfigMaps are read as well in namespaces of Gateways and BackendTLSPolicies that refer to them,
    /// and where ReferenceGrants permit that.
    pub reads_referred: bool,
    /// Whether Pods, Nodes and Namespaces are read to identify the workload of an endpoint (`--control-workloads`).
    pub reads_workloads: bool,
    /// Consumer of the objects. A writer of status reads Namespaces in any case, and every version of an object, since its next
    /// write needs the newest; a proxy the versions that have an effect on it.
    pub reader: Reader,
    /// Longest time that an endpoint is held back until its pod is known (`--workload-wait`).
    pub workload_wait: Duration,
    /// Time that endpoints of a remote cluster stay in effect while its API server is unreachable. `None` for no limit.
    pub endpoint_ttl: Option<Duration>,
    /// Timeouts and intervals of requests.
    pub times: ApiServerTimes,
}

/// Timeouts and intervals of requests to an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiServerTimes {
    /// Interval of API discovery, which finds custom resource definitions that are installed later.
    pub discovery: Duration,
    /// Timeout of a discovery request.
    pub answer: Duration,
    /// Interval of connection attempts to an unreachable server, or after a lost connection.
    pub retry: Duration,
    /// Longest time until the response to a watch begins.
    pub watch_begins: Duration,
    /// Longest time until any other response begins. An API server aborts a list after 60 s.
    pub response_begins: Duration,
    /// Duration in seconds after which the server is asked to end a watch. A watch that is silent for 5 s longer counts
    /// as lost and starts again.
    pub watch_seconds: u32,
}

impl Default for ApiServerTimes {
    fn default() -> ApiServerTimes {
        ApiServerTimes {
            discovery: Duration::from_secs(30),
            answer: Duration::from_secs(10),
            retry: Duration::from_secs(5),
            watch_begins: Duration::from_secs(20),
            response_begins: Duration::from_secs(75),
            watch_seconds: 60,
        }
    }
}

impl KubernetesSettings {
    /// Whether missing permission for a kind is reported.
    pub(super) fn misses(&self, kind: Kind) -> bool {
        match kind {
            // what refers to one says that it is missing
            Kind::ConfigMap => false,
            Kind::Secret => !self.optional.contains(&kind),
            _ => true,
        }
    }

    /// Returns the servers' names in messages.
    pub(in crate::source) fn origins(&self) -> impl Iterator<Item = Origin> {
        self.servers.iter().map(|server| Origin {
            name: server.name(),
            title: "API server",
            is_remote: server.cluster.is_some(),
        })
    }

    /// Returns the watch that an object belongs to, by its path `[NAMESPACE/]RESOURCE/NAME`; `None` if it is not
    /// watched.
    pub(super) fn watch_of(&self, path: &str) -> Option<Key> {
        let mut parts = path.rsplitn(3, '/').skip(1);
        let (resource, namespace) = (parts.next()?, parts.next());
        let named = &self.namespaces;
        let is_own = matches!(resource, "configmaps" | "secrets");
        let is_single = is_own || !named.is_empty();
        let is_wanted = |namespace: &str| match is_own {
            true => self.reads_referred || namespace == self.secrets_namespace,
            false => named.iter().any(|named| named == namespace),
        };
        match namespace {
            Some(namespace) if is_single => {
                is_wanted(namespace).then(|| format!("{resource} in {namespace}").into())
            }
            _ => Some(resource.into()),
        }
    }

    /// Returns the files of the servers' saved states.
    pub(in crate::source) fn state_files(
        &self,
        directory: &Path,
    ) -> impl Iterator<Item = StateFile> {
        let selector = self.selector.as_deref();
        let servers = self.servers.iter();
        servers.map(move |server| server.state_file(directory, selector))
    }
}

/// API server: `kubernetes://[CONTEXT][=REGION/ZONE/GROUP/NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServer {
    /// Context of the kubeconfig. Empty for the current context or the service account of the pod.
    pub context: String,
    /// Key of the remote cluster, of which services and endpoints are read. `None` for the local cluster, of which all
    /// resources are read.
    pub cluster: Option<ClusterKey>,
}

impl ApiServer {
    /// Returns the file of the saved state. Its origin includes the settings that decide which objects are read.
    fn state_file(&self, directory: &Path, selector: Option<&str>) -> StateFile {
        let cluster = self.cluster.as_ref().map(ToString::to_string);
        let origin = format!(
            "{} cluster={} selector={}",
            self.name(),
            cluster.unwrap_or_default(),
            selector.unwrap_or_default()
        );
        StateFile::new(directory, &self.name(), origin)
    }

    /// Returns the name in messages, which is also the prefix of its documents' names.
    pub fn name(&self) -> String {
        format!("{SCHEME}{}", self.context)
    }
}

impl FromStr for ApiServer {
    type Err = String;

    fn from_str(text: &str) -> Result<ApiServer, String> {
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| {
            format!(
                "`{text}` is no source: write `{SCHEME}` for the API server of this cluster, `{SCHEME}CONTEXT` for one of the \
                 kubeconfig, `{SCHEME}CONTEXT=REGION/ZONE/GROUP/NAME` for that of another cluster, or `xds://HOST:PORT` for an \
                 xDS server"
            )
        })?;
        let Some((context, key)) = rest.rsplit_once('=') else {
            return Ok(ApiServer {
                context: rest.to_owned(),
                cluster: None,
            });
        };
        let cluster = ClusterKey::parse(key).ok_or_else(|| {
            format!("`{key}` is no cluster key: write REGION/ZONE/GROUP/NAME, such as eu/eu-1/default/east")
        })?;
        if context.is_empty() {
            return Err(format!(
                "`{text}` names a cluster without its context of the kubeconfig: write `{SCHEME}CONTEXT={key}`"
            ));
        }
        Ok(ApiServer {
            context: context.to_owned(),
            cluster: Some(cluster),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_servers_are_read() {
        for (text, expected) in [
            ("kubernetes://", Ok(("", None))),
            ("kubernetes://east", Ok(("east", None))),
            ("kubernetes://a=eu/z/g/east", Ok(("a", Some("eu/z/g/east")))),
            (
                "kubernetes://arn:aws:eks:eu:1:cluster/web=eu/z/g/web",
                Ok(("arn:aws:eks:eu:1:cluster/web", Some("eu/z/g/web"))),
            ),
            (
                "xds://istiod:15010",
                Err("`xds://istiod:15010` is no source"),
            ),
            ("kubernetes://east=east", Err("`east` is no cluster key")),
            ("kubernetes://=eu/z/g/east", Err("without its context")),
        ] {
            let found = text.parse::<ApiServer>();
            match (&found, expected) {
                (Ok(server), Ok((context, key))) => {
                    assert_eq!(server.context, context, "{text}");
                    let found = server.cluster.as_ref().map(ToString::to_string);
                    assert_eq!(found.as_deref(), key, "{text}");
                    assert!(server.name().starts_with(SCHEME));
                }
                (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
                _ => panic!("{text}: {found:?}"),
            }
        }
    }
}
