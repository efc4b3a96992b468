//! Paths of all Ingresses by host, merged over namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::classes::Served;
use super::objects::Translation;
use super::outcome::{finding, location};
use crate::diagnostic::codes::ingress::{IG010, IG011, IG012, IG013, IG014, IG050, IG051, IG052};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::kind::Name;
use crate::options::{HostOwner, IngressSettings, NginxRegex};
use crate::resource::ResourceSet;
use crate::resource::core::Service;
use crate::resource::networking::{BackendPort, IngressBackend, IngressPath, PathType};
use crate::span::Line;

/// Condition on a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathKey {
    /// Equal path.
    Exact(Arc<str>),
    /// Expression of ingress-nginx.
    Expression(Arc<str>),
    /// Segments, without the `/` at the end.
    Prefix(Arc<str>),
}

impl PathKey {
    /// Whether every path matches.
    pub(super) fn is_any(&self) -> bool {
        match self {
            PathKey::Exact(_) => false,
            PathKey::Expression(text) => ["/", "/.*", "/(.*)"].contains(&&**text),
            PathKey::Prefix(text) => text.is_empty(),
        }
    }
}

/// Backend of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    /// Service and port. It need not exist.
    Service(Arc<str>, u16),
    /// Response with this status.
    Status(u16),
}

/// Path of a host.
pub(super) struct Entry {
    /// Position of the Ingress in the list of served ones.
    pub(super) ingress: usize,
    pub(super) host: Option<Arc<str>>,
    pub(super) path: PathKey,
    pub(super) backend: Backend,
    pub(super) line: Line,
    /// Canaries: position of the Ingress, and backend.
    pub(super) canaries: Vec<(usize, Backend)>,
}

/// Paths of all Ingresses.
#[derive(Default)]
pub(super) struct Entries {
    /// By Ingress and in the order of the document.
    pub(super) all: Vec<Entry>,
    /// Hosts with a path that every request matches.
    pub(super) whole: BTreeSet<Option<Arc<str>>>,
}

/// Path as written, with the host and the Ingress that it is of.
struct Candidate<'a> {
    ingress: usize,
    host: Option<Arc<str>>,
    written: &'a IngressPath,
}

/// Hosts whose paths are expressions, with `NginxRegex::Host`.
type ExpressionHosts = BTreeSet<Option<Arc<str>>>;

impl Entries {
    /// Collects the paths of Ingresses.
    pub(super) fn collect(
        set: &ResourceSet,
        settings: &IngressSettings,
        served: &[Served],
        out: &mut Translation,
    ) -> Self {
        let candidates = candidates(settings, served, out);
        let hosts = expression_hosts(settings, served, &candidates, out);
        let mut entries = Self::default();
        let mut by_path: BTreeMap<(Option<Arc<str>>, PathKey), usize> = BTreeMap::new();
        let is_canary = |one: &&Candidate<'_>| served[one.ingress].nginx.canary.is_some();
        let (canaries, stable): (Vec<_>, Vec<_>) = candidates.iter().partition(is_canary);
        for one in stable {
            let path = path_key(one, served, &hosts, out);
            let key = (one.host.clone(), path.clone());
            if let Some(first) = by_path.get(&key) {
                let first = &entries.all[*first];
                out.findings.push(repeated(one, first, served));
                continue;
            }
            let backend = backend(set, &one.written.backend, &served[one.ingress], out);
            by_path.insert(key, entries.all.len());
            if path.is_any() {
                entries.whole.insert(one.host.clone());
            }
            entries.all.push(Entry {
                ingress: one.ingress,
                host: one.host.clone(),
                path,
                backend,
                line: one.written.line,
                canaries: Vec::new(),
            });
        }
        for one in canaries {
            let path = path_key(one, served, &hosts, out);
            let stable = by_path.get(&(one.host.clone(), path));
            let stable = stable.map(|at| &mut entries.all[*at]);
            let own = &served[one.ingress];
            let stable =
                stable.filter(|entry| served[entry.ingress].namespace() == own.namespace());
            let Some(stable) = stable else {
                out.findings.push(without_stable(one, own));
                continue;
            };
            let backend = backend(set, &one.written.backend, own, out);
            stable.canaries.push((one.ingress, backend));
        }
        entries
    }
}

/// Returns the finding about a path that an older Ingress has as well.
fn repeated(one: &Candidate<'_>, first: &Entry, served: &[Served]) -> Diagnostic {
    let (object, older) = (&served[one.ingress].object, &served[first.ingress].object);
    let host = one.host.as_deref().unwrap_or("every host");
    let message = format!(
        "`{}` of {host} is a path of {} as well, which is older",
        one.written.path, older.id
    );
    let mut found = finding(object, IG010, Severity::Warning, one.written.line, message);
    found.related(location(older, first.line), "the path that counts");
    found.with_help(Some("remove one of the two paths".to_owned()))
}

/// Returns the finding about a canary without a stable path.
fn without_stable(one: &Candidate<'_>, own: &Served) -> Diagnostic {
    let message = format!(
        "no Ingress of the namespace has the path `{}` of this host without `canary`",
        one.written.path
    );
    let line = one.written.line;
    let found = finding(&own.object, IG014, Severity::Warning, line, message);
    let help = "write host, path and type as the stable Ingress has them";
    found.with_help(Some(help.to_owned()))
}

/// Returns the paths of all Ingresses with their hosts and aliases, without those of hosts of other namespaces.
fn candidates<'a>(
    settings: &IngressSettings,
    served: &'a [Served],
    out: &mut Translation,
) -> Vec<Candidate<'a>> {
    let mut owners: BTreeMap<Arc<str>, &Arc<str>> = BTreeMap::new();
    let mut candidates = Vec::new();
    for (ingress, one) in served.iter().enumerate() {
        for rule in &one.object.spec.rules {
            if let Some(host) = &rule.host {
                let owner = *owners.entry(Arc::clone(host)).or_insert(one.namespace());
                if settings.host_owner == HostOwner::First && owner != one.namespace() {
                    let message = format!(
                        "the host `{host}` belongs to the namespace `{owner}`: this rule has no effect"
                    );
                    let found = finding(&one.object, IG013, Severity::Warning, rule.line, message);
                    let help = "write another host, or use `--ingress-host-owner all`";
                    out.findings.push(found.with_help(Some(help.to_owned())));
                    continue;
                }
            }
            let aliases = one.nginx.aliases.iter().filter(|_| rule.host.is_some());
            let hosts = [rule.host.clone()]
                .into_iter()
                .chain(aliases.cloned().map(Some));
            for host in hosts {
                candidates.extend(rule.paths.iter().map(|written| Candidate {
                    ingress,
                    host: host.clone(),
                    written,
                }));
            }
        }
    }
    candidates
}

/// Returns the hosts whose paths are all expressions, and reports where ingress-nginx would compare paths so.
fn expression_hosts(
    settings: &IngressSettings,
    served: &[Served],
    candidates: &[Candidate<'_>],
    out: &mut Translation,
) -> ExpressionHosts {
    let has_expressions = |at: usize| {
        let nginx = &served[at].nginx;
        nginx.has_expressions || nginx.rewrite.is_some()
    };
    let hosts: ExpressionHosts = candidates
        .iter()
        .filter(|one| has_expressions(one.ingress))
        .map(|one| one.host.clone())
        .collect();
    if settings.nginx_regex == NginxRegex::Host {
        return hosts;
    }
    for one in candidates {
        let is_other = one.written.path_type != PathType::ImplementationSpecific
            || !has_expressions(one.ingress);
        if is_other && *one.written.path != *"/" && hosts.contains(&one.host) {
            let message = format!(
                "ingress-nginx would compare `{}` as an expression that ignores case, since an Ingress of the host has expressions",
                one.written.path
            );
            let object = &served[one.ingress].object;
            let found = finding(object, IG052, Severity::Note, one.written.line, message);
            let help = "`--ingress-nginx-regex host` compares it so";
            out.findings.push(found.with_help(Some(help.to_owned())));
        }
    }
    ExpressionHosts::new()
}

fn path_key(
    one: &Candidate<'_>,
    served: &[Served],
    hosts: &ExpressionHosts,
    out: &mut Translation,
) -> PathKey {
    let IngressPath {
        path,
        path_type,
        line,
        ..
    } = one.written;
    let (nginx, object) = (&served[one.ingress].nginx, &served[one.ingress].object);
    let wants_expression = nginx.has_expressions || nginx.rewrite.is_some();
    let is_specific = *path_type == PathType::ImplementationSpecific;
    let mut note = |code: Code, severity, message: String, help: &str| {
        let found = finding(object, code, severity, *line, message);
        out.findings.push(found.with_help(Some(help.to_owned())));
    };
    if hosts.contains(&one.host) {
        return PathKey::Expression(Arc::clone(path));
    }
    if wants_expression && is_specific {
        return PathKey::Expression(Arc::clone(path));
    }
    if wants_expression && is_expression(path) {
        let message = format!(
            "`{path}` has the type `{}` and is an expression: it is taken for one",
            path_type.as_str()
        );
        note(
            IG051,
            Severity::Warning,
            message,
            "write `pathType: ImplementationSpecific`",
        );
        return PathKey::Expression(Arc::clone(path));
    }
    if *path_type == PathType::Exact {
        return PathKey::Exact(Arc::clone(path));
    }
    let segments = path.strip_suffix('/').unwrap_or(path);
    if !segments.is_empty() && path.ends_with('/') {
        let message = format!(
            "requests for `{segments}` match as well; ingress-nginx redirects them to `{path}`"
        );
        note(
            IG050,
            Severity::Note,
            message,
            "write the path without `/` at its end",
        );
    }
    PathKey::Prefix(Arc::from(segments))
}

/// Whether a path has characters that only an expression has.
fn is_expression(path: &str) -> bool {
    path.contains(['(', '[', '*', '+', '?', '$', '^', '|', '\\', '{'])
}

/// Returns the backend of a path, and reports one that does not exist.
pub(super) fn backend(
    set: &ResourceSet,
    written: &IngressBackend,
    one: &Served,
    out: &mut Translation,
) -> Backend {
    let mut warn = |code, line: Line, message: String, help: &str| {
        let found = finding(&one.object, code, Severity::Warning, line, message);
        out.findings.push(found.with_help(Some(help.to_owned())));
    };
    match written {
        IngressBackend::Resource { object, line } => {
            let message = format!(
                "the backend `{object}` is not a Service: requests get a response with status 500"
            );
            warn(IG012, *line, message, "write a `service`");
            Backend::Status(500)
        }
        IngressBackend::Service { name, port, line } => {
            let full = Name::new(Arc::clone(one.namespace()), Arc::clone(name));
            let service = set.services.get(&full);
            let number = match (port, service) {
                (BackendPort::Number(number), None) => Some(*number),
                (BackendPort::Number(number), Some(service)) => {
                    if !has_port(&service.spec, *number) {
                        let message = format!(
                            "Service {full} has no port {number}: requests get a response with status 503"
                        );
                        warn(IG011, *line, message, "write a port of the Service");
                    }
                    Some(*number)
                }
                (BackendPort::Name(port), Some(service)) => {
                    let found = service.spec.port_named(port).map(|port| port.port);
                    if found.is_none() {
                        let message = format!(
                            "Service {full} has no port `{port}`: requests get a response with status 503"
                        );
                        warn(
                            IG011,
                            *line,
                            message,
                            "write the name of a port of the Service",
                        );
                    }
                    found
                }
                (BackendPort::Name(_), None) => None,
            };
            if service.is_none() {
                let message = format!(
                    "Service {full} does not exist: requests get a response with status 503"
                );
                warn(IG011, *line, message, "write a Service of the namespace");
            }
            number.map_or(Backend::Status(503), |number| {
                Backend::Service(Arc::clone(name), number)
            })
        }
    }
}

fn has_port(service: &Service, number: u16) -> bool {
    service.external_name().is_some() || service.port(number).is_some()
}
