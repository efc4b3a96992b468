//! What clusters say differently of one service. None of it keeps an import from being made: the oldest counts.

use std::collections::BTreeSet;

use config_loader::diagnostic::codes::imports::IM001;
use config_loader::resource::core::{Service, ServicePort, ServiceType};
use config_loader::resource::flomesh::{ImportPort, ServiceAccount};
use config_loader::resource::{Line, Object};
use config_loader::{Diagnostic, Severity};

use crate::compile::imports::exported::Exported;
use crate::compile::imports::exported::finding;
use crate::compile::imports::exported::place;

/// Warns of each export whose Service is not like that of the oldest one, or else like the importing cluster's own.
pub(in crate::compile) fn check(
    exports: &[Exported<'_>],
    own: Option<&Object<Service>>,
    found: &mut Vec<Diagnostic>,
) {
    for (index, export) in exports.iter().enumerate() {
        let oldest = exports.first().filter(|_| index > 0);
        let elsewhere = oldest.map(|oldest| oldest.service).into_iter().chain(own);
        let mut differences = elsewhere.filter_map(|other| {
            let what = difference(&export.service.spec, &other.spec)?;
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

/// In what two Services differ for those who call them, in words.
fn difference(here: &Service, there: &Service) -> Option<String> {
    let (a, b) = (type_name(here), type_name(there));
    if a != b {
        return Some(format!("its type is {a} here, {b} there"));
    }
    let (a, b) = (ports(here), ports(there));
    let list = |ports: &BTreeSet<String>| match ports.is_empty() {
        true => "none".to_owned(),
        false => ports.iter().cloned().collect::<Vec<_>>().join(", "),
    };
    (a != b).then(|| format!("its ports are {} here, {} there", list(&a), list(&b)))
}

fn type_name(service: &Service) -> &'static str {
    match service.service_type {
        ServiceType::ClusterIp => "ClusterIP",
        ServiceType::ExternalName(_) => "ExternalName",
        ServiceType::LoadBalancer => "LoadBalancer",
        ServiceType::NodePort => "NodePort",
    }
}

/// Ports as those see them who call; which ports pods and nodes have for them is each cluster's own.
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

/// A port that would be a second one of its cluster under one port of the import.
pub(in crate::compile) fn no_place(
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

/// A service account other than that of the oldest export, which counts.
pub(in crate::compile) fn other_account(
    export: &Exported<'_>,
    first: &ServiceAccount,
) -> Diagnostic {
    let first = match first {
        ServiceAccount::Any => "*",
        ServiceAccount::Named(name) => name,
    };
    let message = format!("an older export says `{first}`, which counts for all clusters");
    let mut found = warn(export, "spec.serviceAccountName", message);
    found.help(
        "let workloads of one service have one service account in all clusters, or write `*`",
    );
    found
}

fn warn(export: &Exported<'_>, field: &str, message: String) -> Diagnostic {
    let kind = (Severity::Warning, IM001);
    finding(export.object, (field, Line::default()), kind, message)
}
