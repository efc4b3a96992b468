//! Table of kinds: one row per kind, with its apiVersions and the functions that read and check its documents.
//!
//! Each family of kinds has its own file of rows. A new kind is a raw type, a validator, a checked type and a row.

pub mod api;
mod core;
mod draft;
mod envoy_gateway;
mod gateway_api;
mod istio;
mod lookup;
mod metadata;
mod multicluster;
mod networking;
mod row;
pub mod unsupported;
mod unsupported_fields;

use std::collections::BTreeSet;

pub use draft::Body;
pub(crate) use draft::{DocumentObject, Draft};
pub use lookup::{in_group, served_as};
pub use row::Row;

use crate::diagnostic::suggest;
use crate::kind::Kind;
pub use crate::kind::MCS_API;

/// Group of another project with a kind that is named like a security policy.
const LINKERD: &str = "policy.linkerd.io";

/// Iterates over all rows.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    [
        istio::ROWS,
        multicluster::ROWS,
        core::ROWS,
        envoy_gateway::ROWS,
        gateway_api::ROWS,
        networking::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// Result of looking up the kind and apiVersion of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// Supported kind.
    Known(&'static Row),
    /// Supported kind with an unsupported apiVersion.
    WrongVersion(&'static Row),
    /// Unknown kind.
    Unknown,
}

/// Returns the row for a document. Kinds with the same name in other API groups are [`Found::Unknown`].
pub(crate) fn find(kind: &str, api_version: &str) -> Found {
    let named = || rows().filter(|row| row.kind.as_str() == kind);
    if let Some(row) = named().find(|row| row.api_versions.contains(&api_version)) {
        return Found::Known(row);
    }
    // of a security policy, any group but that of another project is a mistake
    let is_policy = |row: &Row| row.kind.is_security() && group(api_version) != LINKERD;
    let wrong = named().find(|row| {
        let mut versions = row.api_versions.iter();
        is_policy(row) || versions.any(|known| is_meant(group(known), api_version))
    });
    wrong.map_or(Found::Unknown, Found::WrongVersion)
}

/// Returns the API group that distinguishes objects of a kind; empty if the kind has only one group.
pub(crate) fn distinct_group(row: &'static Row, api_version: &str) -> &'static str {
    let groups = groups(row.kind);
    let written = group(api_version);
    let find = |is_it: &dyn Fn(&str) -> bool| groups.iter().copied().find(|known| is_it(known));
    let exact = find(&|known| known == written);
    let meant = exact.or_else(|| find(&|known| is_near(known, written)));
    meant.filter(|_| groups.len() > 1).unwrap_or("")
}

/// Returns the API groups of a kind, the one that takes precedence first. For flomesh that is the newer group.
pub(crate) fn groups(kind: Kind) -> Vec<&'static str> {
    let of_kind = rows().filter(|row| row.kind == kind);
    let groups: BTreeSet<_> = of_kind
        .flat_map(|row| row.api_versions)
        .map(|known| group(known))
        .collect();
    let mut groups: Vec<_> = groups.into_iter().rev().collect();
    groups.sort_by_key(|group| *group == MCS_API);
    groups
}

/// Returns the group of an apiVersion; empty for the core group.
pub(crate) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether `api_version` probably means the group `ours`: it is misspelled, incomplete, or the group is missing and the
/// core group has no kind of this name.
fn is_meant(ours: &str, api_version: &str) -> bool {
    let Some((group, _)) = api_version.split_once('/') else {
        return true;
    };
    is_near(ours, group) || (!group.is_empty() && ours.contains(group))
}

/// Whether `group` equals `ours` or is a likely misspelling of it.
fn is_near(ours: &str, group: &str) -> bool {
    ours == group || (!group.is_empty() && suggest::distance(ours, group) <= 2)
}

/// Whether a document with an unknown kind may be a security policy: it is of their group, or its kind is a likely
/// misspelling of theirs.
pub(crate) fn may_be_policy(kind: &str, api_version: &str) -> bool {
    let written = kind.to_ascii_lowercase();
    rows().filter(|row| row.kind.is_security()).any(|row| {
        let known = row.kind.as_str().to_ascii_lowercase();
        suggest::distance(&known, &written) <= 2
            || row
                .api_groups()
                .iter()
                .any(|known| is_near(known, group(api_version)))
    })
}

/// Whether a text may have a security policy, as far as its words tell.
pub(crate) fn names_policies(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut kinds = Kind::ALL.iter().filter(|kind| kind.is_security());
    // access policies of Gloo are in a Destination
    text.contains("security.istio.io")
        || text.contains("appliedaccesspolic")
        || kinds.any(|kind| text.contains(&kind.as_str().to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_row() {
        for kind in Kind::ALL {
            assert!(rows().any(|row| row.kind == kind), "{kind}");
        }
    }

    #[test]
    fn newer_flomesh_group_is_preferred_and_upstream_is_last() {
        let imports = ["multicluster.flomesh.io", "flomesh.io", MCS_API];
        assert_eq!(groups(Kind::ServiceImport), imports);
        assert_eq!(groups(Kind::GlobalTrafficPolicy), imports[..2]);
        assert_eq!(groups(Kind::Gateway), ["networking.istio.io"]);
        let version = format!("{MCS_API}/v1beta1");
        let Found::Known(row) = find("ServiceImport", &version) else {
            panic!("{version} is read");
        };
        assert_eq!(distinct_group(row, &version), MCS_API);
    }

    #[test]
    fn kinds_are_distinguished_by_group() {
        let found = |kind, api_version| match find(kind, api_version) {
            Found::Known(row) => format!("{}", row.kind),
            Found::WrongVersion(row) => format!("not {}", row.kind),
            Found::Unknown => "none".to_owned(),
        };
        assert_eq!(found("Gateway", "networking.istio.io/v1"), "Gateway");
        assert_eq!(found("Gateway", "networking.istio.io/v1alpha3"), "Gateway");
        assert_eq!(found("Gateway", "networking.istio.io/v7"), "not Gateway");
        assert_eq!(found("Gateway", "networking.itsio.io/v1"), "not Gateway");
        assert_eq!(found("Gateway", "gateway.networking.k8s.io/v1"), "Gateway");
        assert_eq!(
            found("Gateway", "gateway.networking.k8s.io/v9"),
            "not Gateway"
        );
        assert_eq!(found("Service", "v1"), "Service");
        assert_eq!(found("Service", "serving.knative.dev/v1"), "none");
        assert_eq!(found("Service", "v2"), "not Service");
        assert_eq!(found("Deployment", "apps/v1"), "none");
    }
}
