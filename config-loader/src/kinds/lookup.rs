//! Lookup of rows by the names that an API server uses.

use super::row::Row;
use super::{group, rows};
use crate::kind::Kind;

impl Row {
    /// Returns the singular name, which `kubectl` accepts instead of the plural.
    pub fn singular(&self) -> String {
        self.kind.as_str().to_ascii_lowercase()
    }

    /// Iterates over the versions of one of the kind's API groups, the preferred one first; empty for other groups.
    pub fn versions_in<'a>(&self, of: &'a str) -> impl Iterator<Item = &'static str> + use<'a> {
        self.api_versions
            .iter()
            .filter(move |known| group(known) == of)
            .map(|known| known.rsplit('/').next().unwrap_or(known))
    }

    /// Returns the API groups, each once; the core group is empty.
    pub fn api_groups(&self) -> Vec<&'static str> {
        let mut groups: Vec<&str> = self.api_versions.iter().map(|v| group(v)).collect();
        groups.dedup();
        groups
    }
}

/// Returns the row of the kind with this group, version and plural; an empty group is the core group.
pub fn served_as(group: &str, version: &str, plural: &str) -> Option<&'static Row> {
    rows().find(|row| {
        row.api.plural == plural && row.versions_in(group).any(|known| known == version)
    })
}

/// Returns the row of a kind in an API group.
pub fn in_group(kind: Kind, group: &str) -> Option<&'static Row> {
    rows().find(|row| row.kind == kind && row.versions_in(group).next().is_some())
}

#[cfg(test)]
mod tests {
    use super::super::MCS_API;
    use super::*;

    #[test]
    fn rows_are_found_by_their_path() {
        let kind = |group, version, plural| served_as(group, version, plural).map(|row| row.kind);
        assert_eq!(kind("", "v1", "services"), Some(Kind::Service));
        let istio = "networking.istio.io";
        assert_eq!(
            kind(istio, "v1beta1", "virtualservices"),
            Some(Kind::VirtualService)
        );
        assert_eq!(kind(istio, "v2", "virtualservices"), None);
        let flomesh = "multicluster.flomesh.io";
        assert_eq!(
            kind(flomesh, "v1alpha1", "serviceimports"),
            Some(Kind::ServiceImport)
        );
        let upstream = in_group(Kind::ServiceImport, MCS_API);
        assert_eq!(
            upstream.map(|row| row.api_versions),
            served_as(MCS_API, "v1alpha1", "serviceimports").map(|row| row.api_versions)
        );
    }

    #[test]
    fn clusters_and_parts_of_them_are_outside_of_namespaces() {
        let outside = [
            Kind::Cluster,
            Kind::GatewayClass,
            Kind::IngressClass,
            Kind::Namespace,
            Kind::Node,
        ];
        for row in rows() {
            assert_eq!(row.api.is_namespaced, !outside.contains(&row.kind));
        }
    }
}
