//! Which resources a server has of those that are read, and at which version.

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

/// A resource that is served and read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resource {
    /// Its kind.
    pub(super) kind: Kind,
    /// How the server calls it.
    pub(super) api: ApiResource,
    /// Whether its objects are in namespaces.
    pub(super) is_namespaced: bool,
}

impl Resource {
    /// What it is called in messages, as `kubectl` has it.
    pub(super) fn name(&self) -> String {
        match self.api.group.is_empty() {
            true => self.api.plural.clone(),
            false => format!("{}.{}", self.api.plural, self.api.group),
        }
    }
}

/// Which resources are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Selection<'a> {
    /// All that are read.
    All,
    /// Those of these kinds.
    Kinds(&'a [Kind]),
    /// Those of these kinds in these API groups.
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

    /// The rows of kinds with the versions of each that are asked for.
    fn versions(self) -> impl Iterator<Item = (&'static Row, &'static str)> {
        kinds::rows()
            .flat_map(|row| row.api_versions.iter().map(move |version| (row, *version)))
            .filter(move |(row, version)| self.has(row.kind, kinds::group(version)))
    }
}

/// What a server has at one version of a group, by `apiVersion`.
pub(super) type Served = BTreeMap<String, Vec<APIResource>>;

/// What a server serves.
#[derive(Debug)]
pub(super) struct Discovered {
    /// The resources that are read.
    pub(super) resources: Vec<Resource>,
    /// Whether it takes reports of proxies.
    pub(super) takes_reports: bool,
    /// Whether it has been started; none if that was not asked.
    pub(super) readiness: Option<Readiness>,
    /// Groups with kinds that are read, none of whose versions is, such as `discovery.k8s.io` at `v1beta1` only.
    pub(super) unread: Vec<UnreadGroup>,
}

/// Whether a server has been started. One that starts serves a part of its groups, and says nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// It serves everything that it has, or has no page that says so.
    Ready,
    /// It starts, or ends.
    NotReady,
    /// The credentials do not allow to ask.
    Unknown,
}

/// A group, none of whose versions is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnreadGroup {
    /// Its name.
    pub(super) name: String,
    /// The versions that are served.
    pub(super) served: Vec<String>,
    /// The versions that are read.
    pub(super) read: Vec<String>,
}

/// Asks `client` for what it serves of `only`, and before that, if `asks_readiness`, whether it is ready.
///
/// # Errors
/// If the server cannot be asked, or not about one of the groups, or does not answer within `answer_max`.
pub(super) async fn discover(
    client: &Client,
    (only, asks_readiness): (Selection<'_>, bool),
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

/// Asks for resources, and for the groups that there are.
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

/// The groups with kinds that are read, but at other versions.
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

/// Of each kind and group the version that is read and served, the preferred one first.
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

/// Whether it is the resource of a kind, not a part of one such as its status, and can be followed.
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
