//! API discovery: resources of a server that are read, and the version of each.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource};
use kube::Client;
use kube::api::ApiResource;

use super::problems::{Refusal, refusal};
use super::silence::Late;
use crate::kind::Kind;
use crate::kinds::{self, Row};
use crate::proxy_state::REPORT_GROUP;

/// Resource that is served and read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resource {
    /// Kind of the resource.
    pub(super) kind: Kind,
    /// Group, version and plural name on the server.
    pub(super) api: ApiResource,
    /// Whether the resource is namespaced.
    pub(super) is_namespaced: bool,
}

impl Resource {
    /// Returns the name in messages, as `kubectl` writes it: `PLURAL` or `PLURAL.GROUP`.
    pub(super) fn name(&self) -> String {
        match self.api.group.is_empty() {
            true => self.api.plural.clone(),
            false => format!("{}.{}", self.api.plural, self.api.group),
        }
    }
}

/// Resources to discover.
#[derive(Clone, Copy, Debug)]
pub(super) enum Selection<'a> {
    /// All resources that are read.
    All,
    /// Resources of these kinds.
    Kinds(&'a [Kind]),
    /// Resources of these kinds in these API groups.
    Resources(&'a [(Kind, &'static str)]),
}

impl Selection<'_> {
    fn has(self, kind: Kind, group: &str) -> bool {
        match self {
            Selection::All => true,
            Selection::Kinds(kinds) => kinds.contains(&kind),
            Selection::Resources(resources) => resources.contains(&(kind, group)),
        }
    }

    /// Returns the selected kinds with each version that is read.
    fn versions(self) -> impl Iterator<Item = (&'static Row, &'static str)> {
        kinds::rows()
            .flat_map(|row| row.api_versions.iter().map(move |version| (row, *version)))
            .filter(move |(row, version)| self.has(row.kind, kinds::group(version)))
    }
}

/// Resources that a server serves, by `apiVersion`.
pub(super) type Served = BTreeMap<String, Vec<APIResource>>;

/// Result of discovery.
#[derive(Debug)]
pub(super) struct Discovered {
    /// Resources that are read.
    pub(super) resources: Vec<Resource>,
    /// Whether the server accepts reports of proxies (a config server).
    pub(super) takes_reports: bool,
    /// Readiness of the server; `None` if it was not asked.
    pub(super) readiness: Option<Readiness>,
    /// API groups with known kinds of which no served version is read, such as `discovery.k8s.io` at `v1beta1` only.
    pub(super) unread: Vec<UnreadGroup>,
}

/// Readiness of a server. A server that is starting serves part of its API groups without saying so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// The server serves all of its API groups, or has no readiness endpoint.
    Ready,
    /// The server is starting or shutting down.
    NotReady,
    /// The credentials do not allow the request.
    Unknown,
}

/// API group of which no served version is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnreadGroup {
    /// Name of the group.
    pub(super) name: String,
    /// Versions that are served.
    pub(super) served: Vec<String>,
    /// Versions that are read.
    pub(super) read: Vec<String>,
}

/// Discovers which resources of `only` the server serves. Asks for readiness first if `asks_readiness` is set.
///
/// # Errors
/// If a request fails, also for a single group, or does not complete within `answer_max`.
pub(super) async fn discover(
    client: &Client,
    only: Selection<'_>,
    asks_readiness: bool,
    answer_max: Duration,
) -> Result<Discovered, kube::Error> {
    let asked = tokio::time::timeout(answer_max, async {
        let readiness = match asks_readiness {
            true => Some(readiness(client).await),
            false => None,
        };
        ask(client, only).await.map(|found| (readiness, found))
    });
    let late = || kube::Error::Service(Box::new(Late));
    let (readiness, (served, groups)) = asked.await.map_err(|_| late())??;
    let mut all = groups.iter();
    Ok(Discovered {
        resources: choose(&served, only),
        takes_reports: all.any(|group| group.name == REPORT_GROUP),
        readiness,
        unread: unread(&groups, only),
    })
}

async fn readiness(client: &Client) -> Readiness {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
        return Readiness::Unknown;
    };
    match client.request_text(request).await {
        Ok(_) => Readiness::Ready,
        Err(kube::Error::Api(status)) if status.code == 404 => Readiness::Ready,
        Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => Readiness::Unknown,
        Err(_) => Readiness::NotReady,
    }
}

/// Requests the resources and the API groups of the server.
async fn ask(client: &Client, only: Selection<'_>) -> Result<(Served, Vec<APIGroup>), kube::Error> {
    let mut served = Served::new();
    let groups = client.list_api_groups().await?;
    let versions = only.versions();
    let mut versions: Vec<String> = versions.map(|(_, version)| version.to_owned()).collect();
    versions.sort_unstable();
    versions.dedup();
    for version in versions {
        if !version.contains('/') {
            let found = client.list_core_api_resources(&version).await?;
            served.insert(version, found.resources);
            continue;
        }
        let mut all = groups.groups.iter().flat_map(|group| &group.versions);
        if all.any(|known| known.group_version == version) {
            // What is not known of one group must not pass for a group that has nothing: objects would be missing.
            match client.list_api_group_resources(&version).await {
                Ok(found) => _ = served.insert(version, found.resources),
                Err(error) if refusal(&error) == Some(Refusal::NotServed) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok((served, groups.groups))
}

/// Returns the API groups with known kinds that are served at other versions only.
fn unread(groups: &[APIGroup], only: Selection<'_>) -> Vec<UnreadGroup> {
    let mut read: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (_, full) in only.versions() {
        let version = full.rsplit('/').next().unwrap_or(full);
        let known = read.entry(kinds::group(full)).or_default();
        if !known.iter().any(|known| known == version) {
            known.push(version.to_owned());
        }
    }
    let unread = groups.iter().filter_map(|group| {
        let read = read.get(&*group.name)?;
        let versions = group.versions.iter();
        let served: Vec<String> = versions.map(|one| one.version.clone()).collect();
        let is_read = served.iter().any(|version| read.contains(version));
        (!is_read).then(|| UnreadGroup {
            name: group.name.clone(),
            served,
            read: read.clone(),
        })
    });
    unread.collect()
}

/// Chooses one version for each kind and group: the most preferred version that is both read and served.
fn choose(served: &Served, only: Selection<'_>) -> Vec<Resource> {
    let mut chosen: Vec<Resource> = Vec::new();
    for (row, version) in only.versions() {
        let group = kinds::group(version);
        let of_group =
            |resource: &Resource| resource.kind == row.kind && resource.api.group == group;
        if chosen.iter().any(of_group) {
            continue;
        }
        let found = served.get(version).into_iter().flatten();
        chosen.extend(
            found
                .filter(|found| is_watchable(found, row.kind))
                .map(|found| resource(found, row.kind, version)),
        );
    }
    chosen
}

/// Whether `found` is the main resource of `kind`, not a subresource such as its status, and supports watching.
fn is_watchable(found: &APIResource, kind: Kind) -> bool {
    let can = |verb: &str| found.verbs.iter().any(|known| known == verb);
    found.kind == kind.as_str() && !found.name.contains('/') && can("list") && can("watch")
}

fn resource(found: &APIResource, kind: Kind, api_version: &str) -> Resource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Resource {
        kind,
        api: ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: found.kind.clone(),
            plural: found.name.clone(),
        },
        is_namespaced: found.namespaced,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::GroupVersionForDiscovery;

    use super::*;

    fn served(of: &[(&str, &[(&str, &str)])]) -> Served {
        let resource = |(kind, plural): &(&str, &str)| APIResource {
            kind: (*kind).to_owned(),
            name: (*plural).to_owned(),
            namespaced: true,
            verbs: vec!["list".to_owned(), "watch".to_owned()],
            ..APIResource::default()
        };
        let version = |(version, resources): &(&str, &[(&str, &str)])| {
            (
                (*version).to_owned(),
                resources.iter().map(resource).collect(),
            )
        };
        of.iter().map(version).collect()
    }

    fn chosen(served: &Served, only: Selection<'_>) -> Vec<String> {
        let name = |found: &Resource| format!("{} {}", found.api.api_version, found.name());
        choose(served, only).iter().map(name).collect()
    }

    #[test]
    fn preferred_version_of_each_group_is_followed_once() {
        let both = served(&[
            (
                "v1",
                &[
                    ("Service", "services"),
                    ("Service", "services/status"),
                    ("ConfigMap", "configmaps"),
                ],
            ),
            (
                "networking.istio.io/v1",
                &[("VirtualService", "virtualservices")],
            ),
            (
                "networking.istio.io/v1beta1",
                &[
                    ("VirtualService", "virtualservices"),
                    ("Gateway", "gateways"),
                ],
            ),
            (
                "flomesh.io/v1alpha1",
                &[("ServiceImport", "serviceimports")],
            ),
            (
                "multicluster.x-k8s.io/v1alpha1",
                &[("ServiceImport", "serviceimports")],
            ),
        ]);
        let mut found = chosen(&both, Selection::All);
        found.sort();
        assert_eq!(
            found,
            [
                "flomesh.io/v1alpha1 serviceimports.flomesh.io",
                "multicluster.x-k8s.io/v1alpha1 serviceimports.multicluster.x-k8s.io",
                "networking.istio.io/v1 virtualservices.networking.istio.io",
                "networking.istio.io/v1beta1 gateways.networking.istio.io",
                "v1 configmaps",
                "v1 services",
            ]
        );
        let services = Selection::Kinds(&[Kind::Service]);
        assert_eq!(chosen(&both, services), ["v1 services"]);
        let imports = [(Kind::ServiceImport, "flomesh.io"), (Kind::Service, "")];
        let mut found = chosen(&both, Selection::Resources(&imports));
        found.sort();
        let expected = [
            "flomesh.io/v1alpha1 serviceimports.flomesh.io",
            "v1 services",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn group_at_other_versions_only_is_named() {
        let group = |name: &str, versions: &[&str]| {
            let version = |version: &&str| GroupVersionForDiscovery {
                group_version: format!("{name}/{version}"),
                version: (*version).to_owned(),
            };
            APIGroup {
                name: name.to_owned(),
                versions: versions.iter().map(version).collect(),
                ..APIGroup::default()
            }
        };
        let old = group("discovery.k8s.io", &["v1beta1"]);
        let groups = [
            old.clone(),
            group("networking.istio.io", &["v2", "v1"]),
            group("example.com", &["v7"]),
        ];
        let expected = UnreadGroup {
            name: "discovery.k8s.io".to_owned(),
            served: vec!["v1beta1".to_owned()],
            read: vec!["v1".to_owned()],
        };
        assert_eq!(unread(&groups, Selection::All), [expected]);
        assert_eq!(unread(&[old], Selection::Kinds(&[Kind::Service])), []);
    }

    #[test]
    fn resource_that_cannot_be_watched_is_left_out() {
        let mut only = served(&[("v1", &[("Service", "services")])]);
        for resources in only.values_mut() {
            resources[0].verbs = vec!["list".to_owned()];
        }
        assert_eq!(chosen(&only, Selection::All), [""; 0]);
    }
}
