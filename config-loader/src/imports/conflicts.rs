//! Conflicts between the exports of one service in several clusters. Conflicts do not prevent an import: the oldest
//! export wins.

use std::collections::BTreeSet;

use super::exported::{Exported, all_exports, finding, place};
use super::types::Source;
use crate::diagnostic::codes::imports::IM001;
use crate::diagnostic::{Diagnostic, Severity};
use crate::kind::ObjectRef;
use crate::resource::core::{Service, ServicePort, ServiceType};
use crate::resource::flomesh::{ClusterKey, ImportPort, ServiceAccount};
use crate::resource::{Line, Object};

/// Export that differs from an older export of the same service, which wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Cluster of the younger export.
    pub cluster: ClusterKey,
    /// Younger export.
    pub export: ObjectRef,
    /// Kind of difference: one of [`MERGED_CONFLICTS`](crate::catalog::MERGED_CONFLICTS).
    pub reason: &'static str,
    /// Description of the difference, and of the export that wins.
    pub message: String,
}

/// Returns the exports that differ from the oldest export of the same service.
pub fn conflicts(sources: &[Source]) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for exports in all_exports(sources).values() {
        for (index, export) in exports.iter().enumerate() {
            let meets = |other: &&Exported<'_>| {
                let mut clusters = sources.iter().map(|source| &source.cluster);
                clusters.any(|at| export.is_visible_in(at) && other.is_visible_in(at))
            };
            let oldest = exports[..index].iter().find(meets);
            conflicts.extend(oldest.and_then(|oldest| conflict_with(export, oldest)));
        }
    }
    conflicts
}

fn conflict_with(export: &Exported<'_>, older: &Exported<'_>) -> Option<Conflict> {
    let (here, there) = (&export.service.spec, &older.service.spec);
    let account = |export: &Exported<'_>| export.object.spec.service_account.clone();
    let (reason, what) = difference(here, there).or_else(|| {
        let (here, there) = (account(export)?, account(older)?);
        let (a, b) = (account_name(&here), account_name(&there));
        let what = format!("its service account is `{a}` here, `{b}` there");
        (a != b).then_some(("ServiceAccountConflict", what))
    })?;
    let message = format!(
        "the older ServiceExport {} of cluster `{}` wins: {what}",
        older.object.id.to_name(),
        older.cluster
    );
    Some(Conflict {
        cluster: export.cluster.clone(),
        export: export.object.id.clone(),
        reason,
        message,
    })
}

/// Warns about each export whose Service differs from the oldest one, or from the importing cluster's own Service.
pub(super) fn check(
    exports: &[Exported<'_>],
    own: Option<&Object<Service>>,
    found: &mut Vec<Diagnostic>,
) {
    for (index, export) in exports.iter().enumerate() {
        let oldest = exports.first().filter(|_| index > 0);
        let elsewhere = oldest.map(|oldest| oldest.service).into_iter().chain(own);
        let mut differences = elsewhere.filter_map(|other| {
            let (_, what) = difference(&export.service.spec, &other.spec)?;
            Some((other, what))
        });
        if let Some((other, what)) = differences.next() {
            found.push(conflict(export, other, &what));
        }
    }
}

fn conflict(export: &Exported<'_>, other: &Object<Service>, what: &str) -> Diagnostic {
    let (name, cluster) = (&export.object.id.name, export.cluster);
    let message = format!(
        "Conflict=True: Service `{name}` of cluster `{cluster}` is not the same elsewhere: {what}"
    );
    let mut found = warn(export, "metadata.name", message);
    found.help(
        "ports are joined by their names, then by their numbers, each with the clusters that export it; give the Services \
         the same type and ports",
    );
    found.related(place(export.service, Line::default()), "this Service");
    found.related(place(other, Line::default()), "the other one");
    found
}

/// Returns the difference between two Services as clients see it: the reason in one word, and a description.
fn difference(here: &Service, there: &Service) -> Option<(&'static str, String)> {
    let (a, b) = (type_name(here), type_name(there));
    if a != b {
        let what = format!("its type is {a} here, {b} there");
        return Some(("TypeConflict", what));
    }
    let (a, b) = (ports(here), ports(there));
    let list = |ports: &BTreeSet<String>| match ports.is_empty() {
        true => "none".to_owned(),
        false => ports.iter().cloned().collect::<Vec<_>>().join(", "),
    };
    (a != b).then(|| {
        let what = format!("its ports are {} here, {} there", list(&a), list(&b));
        ("PortConflict", what)
    })
}

fn type_name(service: &Service) -> &'static str {
    match service.service_type {
        ServiceType::ClusterIp => "ClusterIP",
        ServiceType::ExternalName(_) => "ExternalName",
        ServiceType::LoadBalancer => "LoadBalancer",
        ServiceType::NodePort => "NodePort",
    }
}

/// Returns the ports as clients see them. Target ports and node ports may differ between clusters.
fn ports(service: &Service) -> BTreeSet<String> {
    let text = |port: &ServicePort| {
        let name = match &*port.name {
            "" => String::new(),
            name => format!("{name} "),
        };
        let speaks = match &port.app_protocol {
            None => String::new(),
            Some(speaks) => format!(" {speaks}"),
        };
        format!("{name}{}/{}{speaks}", port.port, port.protocol)
    };
    service.ports.iter().map(text).collect()
}

/// Reports a port that would be the second port of its cluster under one port of the import.
pub(super) fn no_place(
    export: &Exported<'_>,
    port: &ServicePort,
    taken: &ImportPort,
) -> Diagnostic {
    let message = format!(
        "port {} of cluster `{}` is not imported: another port of it is port {} of the import already",
        port.port, export.cluster, taken.port
    );
    let mut found = warn(export, "metadata.name", message);
    found.help("give the Services the same ports under the same names");
    found.related(place(export.service, port.line), "the port");
    found
}

/// Reports a service account that differs from the one of the oldest export, which is used.
pub(super) fn other_account(export: &Exported<'_>, first: &ServiceAccount) -> Diagnostic {
    let first = account_name(first);
    let message = format!("an older export says `{first}`, which counts for all clusters");
    let mut found = warn(export, "spec.serviceAccountName", message);
    found.help(
        "let workloads of one service have one service account in all clusters, or write `*`",
    );
    found
}

fn account_name(account: &ServiceAccount) -> &str {
    match account {
        ServiceAccount::Any => "*",
        ServiceAccount::Named(name) => name,
    }
}

fn warn(export: &Exported<'_>, field: &str, message: String) -> Diagnostic {
    finding(export.object, field, Severity::Warning, IM001, message)
}
