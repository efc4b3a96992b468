//! Which API servers are followed, and what of them.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::kind::Kind;
use crate::resource::flomesh::ClusterKey;
use crate::source::state::StateFile;
use crate::source::stream::report::{Key, Origin};

/// What an API server's name begins with.
const SCHEME: &str = "kubernetes://";

/// Which API servers are followed, and what of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubernetesSettings {
    /// The servers; those of the proxy's own cluster have no key.
    pub servers: Vec<ApiServer>,
    /// The kubeconfig; none for `KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// The resources that are read, each as kind and API group; none for all. Other clusters have fewer.
    pub resources: Vec<(Kind, &'static str)>,
    /// Kinds that the proxy does without if the credentials do not allow them (`--control-optional`); Secrets are not even missed
    /// then.
    pub optional: Vec<Kind>,
    /// The namespaces that are read; none for all.
    pub namespaces: Vec<String>,
    /// Only objects with these labels are read; Services, EndpointSlices and Secrets are, in any case.
    pub selector: Option<String>,
    /// The namespace whose Secrets are read: those of other namespaces are none of this proxy's business. Empty for none.
    pub secrets_namespace: String,
    /// Whether pods, nodes and namespaces are read, which say what workload an endpoint is (`--control-workloads`).
    pub reads_workloads: bool,
    /// Time that an endpoint waits for its pod (`--workload-wait`).
    pub workload_wait: Duration,
    /// How long the endpoints of another cluster stay in effect while its API server cannot be reached; none for ever.
    pub endpoint_ttl: Option<Duration>,
    /// How long servers may take.
    pub times: ApiServerTimes,
}

/// How long an API server may take, and how often it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiServerTimes {
    /// Interval in which it is asked what it serves: definitions of resources may be installed later.
    pub discovery: Duration,
    /// Longest time of an answer about what it serves.
    pub answer: Duration,
    /// Interval in which a server that cannot be reached is asked, and one of which a connection was lost.
    pub retry: Duration,
    /// Longest time until the response to a watch begins.
    pub watch_begins: Duration,
    /// Longest time until any other response begins: a server gives a list up after 60 s.
    pub response_begins: Duration,
    /// Seconds after which a server is asked to end a watch. A watch that says nothing for 5 s longer is begun again, wherever it
    /// was lost.
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
    /// Whether it is reported that the credentials do not allow a kind.
    pub(super) fn misses(&self, kind: Kind) -> bool {
        kind != Kind::Secret || !self.optional.contains(&kind)
    }

    /// What messages call the servers.
    pub(in crate::source) fn origins(&self) -> impl Iterator<Item = Origin> {
        self.servers.iter().map(|server| Origin {
            name: server.name(),
            title: "API server",
            is_remote: server.cluster.is_some(),
        })
    }

    /// The watch that an object belongs to, by its path `[NAMESPACE/]RESOURCE/NAME`; none if it is not watched.
    pub(super) fn watch_of(&self, path: &str) -> Option<Key> {
        let mut parts = path.rsplitn(3, '/').skip(1);
        let (resource, namespace) = (parts.next()?, parts.next());
        let named = &self.namespaces;
        let is_single = resource == "secrets" || !named.is_empty();
        let is_wanted = |namespace: &str| match resource {
            "secrets" => namespace == self.secrets_namespace,
            _ => named.iter().any(|named| named == namespace),
        };
        match namespace {
            Some(namespace) if is_single => {
                is_wanted(namespace).then(|| format!("{resource} in {namespace}").into())
            }
            _ => Some(resource.into()),
        }
    }

    /// The files in which what the servers say is saved.
    pub(in crate::source) fn state_files(
        &self,
        directory: &Path,
    ) -> impl Iterator<Item = StateFile> {
        let selector = self.selector.as_deref();
        let servers = self.servers.iter();
        servers.map(move |server| server.state_file(directory, selector))
    }
}

/// An API server: `kubernetes://[CONTEXT][=REGION/ZONE/GROUP/NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServer {
    /// The context of the kubeconfig; empty for the current one, or the service account of the pod.
    pub context: String,
    /// The key of the other cluster whose services and endpoints it has; none for the proxy's own cluster, whose objects are
    /// all read.
    pub cluster: Option<ClusterKey>,
}

impl ApiServer {
    /// The file of what it says, and what its objects are of: a proxy with other settings would not read all of them alike.
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

    /// What it is called in messages, and what the names of its objects begin with.
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
