//! Type URLs of resources: `GROUP/VERSION/KIND`, as Istio uses them for `GENERATOR=api`.

use crate::kind::Kind;
use crate::kinds::{Body, Row, rows};

/// Name of the core group in type URLs. In `apiVersion` it is empty.
const CORE: &str = "core";

/// Kind of resource at its preferred version.
#[derive(Clone, Debug)]
pub struct ResourceType {
    /// `GROUP/VERSION/KIND`.
    pub url: String,
    /// `apiVersion` of the objects.
    pub api_version: &'static str,
    /// Plural and group: `virtualservices.networking.istio.io`.
    pub name: String,
    /// Row of the kind.
    pub row: &'static Row,
}

impl ResourceType {
    fn of(row: &'static Row, api_version: &'static str) -> ResourceType {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let url_group = if group.is_empty() { CORE } else { group };
        let plural = row.api.plural;
        ResourceType {
            url: format!("{url_group}/{version}/{}", row.kind.as_str()),
            api_version,
            name: match group.is_empty() {
                true => plural.to_owned(),
                false => format!("{plural}.{group}"),
            },
            row,
        }
    }

    /// Returns the kind.
    pub fn kind(&self) -> Kind {
        self.row.kind
    }

    /// Whether objects have their content in `spec`.
    pub fn has_spec(&self) -> bool {
        self.row.body == Body::Spec
    }
}

/// Returns all types: one for each API group of a kind, at the preferred version of that group.
pub fn resource_types() -> impl Iterator<Item = ResourceType> {
    rows().flat_map(|row| {
        let groups = row.api_groups().into_iter();
        groups.filter_map(move |of| {
            let version = row.versions_in(of).next()?;
            let mut known = row.api_versions.iter();
            let full = known.find(|full| match of.is_empty() {
                true => **full == version,
                false => {
                    full.strip_prefix(of)
                        .and_then(|rest| rest.strip_prefix('/'))
                        == Some(version)
                }
            })?;
            Some(ResourceType::of(row, full))
        })
    })
}

/// Returns the type of a type URL, for any supported version of a kind.
pub fn resource_type(url: &str) -> Option<ResourceType> {
    let mut parts = url.splitn(3, '/');
    let (group, version, kind) = (parts.next()?, parts.next()?, parts.next()?);
    let api_version = match group {
        CORE => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    rows().find_map(|row| {
        let mut known = row.api_versions.iter();
        let full = known.find(|full| **full == api_version)?;
        (row.kind.as_str() == kind).then(|| ResourceType::of(row, full))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_urls_are_those_of_istio() {
        let urls: Vec<String> = resource_types().map(|found| found.url).collect();
        for url in [
            "networking.istio.io/v1/VirtualService",
            "networking.istio.io/v1/DestinationRule",
            "security.istio.io/v1/PeerAuthentication",
            "core/v1/Service",
            "core/v1/Pod",
            "discovery.k8s.io/v1/EndpointSlice",
        ] {
            assert!(urls.iter().any(|known| known == url), "{url}: {urls:?}");
        }
        for url in &urls {
            let found = resource_type(url).expect("its own URL");
            assert_eq!(&found.url, url);
        }
        assert!(resource_type("networking.istio.io/v1alpha3/Gateway").is_some());
        for url in [
            "",
            "a/b",
            "networking.istio.io/v9/Gateway",
            "core/v1/Gateway",
        ] {
            assert!(resource_type(url).is_none(), "{url}");
        }
    }
}
