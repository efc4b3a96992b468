//! Table of served resources: the kinds of `config_loader`, Namespaces, Leases and proxy reports.

use std::sync::LazyLock;

use config_loader::Kind;
use config_loader::kinds::{self, Row, api::Api, api::Column};
use config_loader::proxy_state::{REPORT_GROUP, REPORT_KIND, REPORT_PLURAL, REPORT_VERSION};

/// Resource: one kind in one API group.
#[derive(Debug)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Served versions, the preferred one first.
    pub versions: Vec<&'static str>,
    /// Kind of the objects.
    pub kind: &'static str,
    /// Names and table columns.
    pub api: Api,
    /// Row of `config_loader` that parses the objects; `None` for Namespaces, Leases and proxy reports.
    pub row: Option<&'static Row>,
}

static RESOURCES: LazyLock<Vec<Resource>> = LazyLock::new(collect);

/// Pods and Nodes, which a hub serves over xDS alone. No API has them.
static WORKLOADS: LazyLock<Vec<Resource>> = LazyLock::new(|| {
    let rows = kinds::rows().filter(|row| matches!(row.kind, Kind::Node | Kind::Pod));
    rows.flat_map(of_row).collect()
});

const NAMESPACE: Api = Api {
    plural: "namespaces",
    short_names: &["ns"],
    categories: &[],
    is_namespaced: false,
    has_status: true,
    columns: &[
        Column {
            name: "Status",
            json_path: ".status.phase",
            holds: "string",
        },
        Column {
            name: "Age",
            json_path: ".metadata.creationTimestamp",
            holds: "date",
        },
    ],
};

const LEASE: Api = Api {
    plural: "leases",
    short_names: &[],
    categories: &[],
    is_namespaced: true,
    has_status: false,
    columns: &[
        Column {
            name: "Holder",
            json_path: ".spec.holderIdentity",
            holds: "string",
        },
        Column {
            name: "Age",
            json_path: ".metadata.creationTimestamp",
            holds: "date",
        },
    ],
};

const fn column(name: &'static str, json_path: &'static str, holds: &'static str) -> Column {
    Column {
        name,
        json_path,
        holds,
    }
}

const PROXY: Api = Api {
    plural: REPORT_PLURAL,
    short_names: &["px"],
    categories: &[],
    is_namespaced: true,
    has_status: false,
    columns: &[
        column("Cluster", ".spec.cluster", "string"),
        column("Mode", ".spec.mode", "string"),
        column("Version", ".spec.version", "string"),
        column("Revision", ".status.revision", "string"),
        column("Newest", ".status.newestRevision", "string"),
        column("Rejected", ".status.rejectedCount", "string"),
        column("Last Change", ".status.lastChange", "string"),
        column("Last Seen", ".status.lastSeen", "date"),
        column("Age", ".metadata.creationTimestamp", "date"),
    ],
};

fn collect() -> Vec<Resource> {
    let own = |group, kind, api| Resource {
        group,
        versions: vec!["v1"],
        kind,
        api,
        row: None,
    };
    let mut resources = vec![
        own("", "Namespace", NAMESPACE),
        own("coordination.k8s.io", "Lease", LEASE),
        Resource {
            versions: vec![REPORT_VERSION],
            ..own(REPORT_GROUP, REPORT_KIND, PROXY)
        },
    ];
    let rows = kinds::rows().filter(|row| !row.kind.is_state());
    resources.extend(rows.flat_map(of_row));
    resources
}

/// Returns the resources of a kind, one for each API group.
fn of_row(row: &'static Row) -> impl Iterator<Item = Resource> {
    row.api_groups().into_iter().map(move |group| Resource {
        group,
        versions: row.versions_in(group).collect(),
        kind: row.kind.as_str(),
        api: row.api,
        row: Some(row),
    })
}

/// Returns every resource of the API.
pub fn all() -> &'static [Resource] {
    &RESOURCES
}

/// Returns the resource of the API with that group, version and plural, and its version.
pub fn find(group: &str, version: &str, plural: &str) -> Option<(&'static Resource, &'static str)> {
    served(group, version, plural).filter(|(resource, _)| !resource.is_workload())
}

/// Returns the resource with that group, version and plural that is served over xDS, and its version.
pub fn served(
    group: &str,
    version: &str,
    plural: &str,
) -> Option<(&'static Resource, &'static str)> {
    let resource = named(group, plural)?;
    let version = resource.versions.iter().find(|known| **known == version)?;
    Some((resource, version))
}

/// Returns the resource with that group and plural.
pub fn named(group: &str, plural: &str) -> Option<&'static Resource> {
    let named = |resource: &&Resource| resource.group == group && resource.api.plural == plural;
    all().iter().chain(&*WORKLOADS).find(named)
}

/// Returns the resource of objects with that `apiVersion` and kind, and its version.
pub fn of_kind(api_version: &str, kind: &str) -> Option<(&'static Resource, &'static str)> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let named = |resource: &&Resource| resource.group == group && resource.kind == kind;
    let resource = all().iter().find(named)?;
    let version = resource.versions.iter().find(|known| **known == version)?;
    Some((resource, version))
}

/// Returns the resource of the object with that key.
pub fn of_key(key: &str) -> Option<&'static Resource> {
    let mut parts = key.split('/').skip(1);
    let (group, plural) = (parts.next()?, parts.next()?);
    named(if group == CORE { "" } else { group }, plural)
}

/// Name of the core group in keys.
const CORE: &str = "core";

/// Identity comparison: the table contains each resource once.
impl PartialEq for Resource {
    fn eq(&self, other: &Resource) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Resource {}

impl Resource {
    /// Returns the resource of Namespaces.
    pub fn namespaces() -> &'static Resource {
        &RESOURCES[0]
    }

    /// Whether Kubernetes has this kind built in, without a CRD.
    pub fn is_of_kubernetes(&self) -> bool {
        ["", "coordination.k8s.io", "discovery.k8s.io"].contains(&self.group)
    }

    /// Whether the resource is proxy reports, which are not stored.
    pub fn is_report(&self) -> bool {
        self.group == REPORT_GROUP && self.kind == REPORT_KIND
    }

    /// Whether the resource is Pods or Nodes.
    pub fn is_workload(&self) -> bool {
        self.row
            .is_some_and(|row| matches!(row.kind, Kind::Node | Kind::Pod))
    }

    /// Whether the resource is Secrets.
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && self.kind == "Secret"
    }

    /// Whether the objects are Gateways of the Gateway API.
    pub fn is_gateway(&self) -> bool {
        self.row
            .is_some_and(|row| row.kind == Kind::KubernetesGateway)
    }

    /// Returns `plural.group`, or the plural alone in the core group.
    pub fn qualified(&self) -> String {
        qualify(self.api.plural, self.group)
    }

    /// Returns `Kind.group`, or the kind alone in the core group.
    pub fn qualified_kind(&self) -> String {
        qualify(self.kind, self.group)
    }

    /// Returns `group/version`, or the version alone in the core group.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", self.group)
        }
    }

    /// Returns the prefix of the keys of its objects, in one namespace if given.
    pub fn prefix(&self, namespace: Option<&str>) -> String {
        let group = if self.group.is_empty() {
            CORE
        } else {
            self.group
        };
        let plural = self.api.plural;
        match namespace {
            Some(namespace) => format!("/{group}/{plural}/{namespace}/"),
            None => format!("/{group}/{plural}/"),
        }
    }

    /// Returns the key of an object.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}{name}", self.prefix(namespace))
    }
}

fn qualify(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_back_to_their_resource() {
        for resource in all() {
            let key = resource.key(Some("ns"), "name");
            assert!(std::ptr::eq(of_key(&key).unwrap(), resource), "{key}");
        }
    }

    #[test]
    fn every_version_is_found_under_its_path() {
        assert!(find("networking.istio.io", "v1alpha3", "gateways").is_some());
        assert!(find("networking.istio.io", "v2", "gateways").is_none());
        assert!(find("multicluster.flomesh.io", "v1alpha1", "serviceexports").is_some());
        assert!(find("", "v1", "namespaces").is_some());
        for plural in ["nodes", "pods"] {
            assert!(find("", "v1", plural).is_none(), "no API has them");
            let (resource, _) = served("", "v1", plural).unwrap();
            let key = resource.key(Some("ns"), "name");
            assert!(std::ptr::eq(of_key(&key).unwrap(), resource), "{key}");
        }
    }
}
