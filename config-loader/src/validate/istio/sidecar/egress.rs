//! `egress` of a Sidecar.

use std::collections::HashMap;
use std::sync::Arc;

use super::values::{capture_mode, protocol};
use crate::diagnostic::codes::istio::{
    GW203, SC236, SC237, SC238, SC239, SC240, SC241, SC242, SC243, SC244, SC245,
};
use crate::raw::{self, Field};
use crate::resource::istio::{
    Bind, CaptureMode, EgressHost, EgressListener, EgressNamespace, SidecarPort,
};
use crate::span::Span;
use crate::validate::istio::gateway::is_partial_wildcard;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the egress listeners, for services that the workload can reach.
pub(super) fn listeners(
    field: &Field<Vec<Field<raw::istio::IstioEgressListener>>>,
    check: &mut Check<'_>,
) -> Vec<EgressListener> {
    let entries = scalar::items(field, check);
    let last = entries.len().saturating_sub(1);
    let mut catch_all: Option<Span> = None;
    let mut known: HashMap<String, Span> = HashMap::new();
    let mut listeners = Vec::new();
    for (index, (entry, raw)) in entries.into_iter().enumerate() {
        let span = entry.span();
        let listener = listener(raw, span, check);
        if raw.port.get().is_none() && !raw.port.is_invalid() {
            if let Some(first) = catch_all {
                let location = check.location(first);
                check
                    .error(SC237, span, "two entries without port")
                    .help("join their hosts")
                    .related(location, "the first one is here");
            } else if index != last {
                check
                    .error(SC236, span, "the entry without port must be the last")
                    .help("it is for all ports that the other entries do not name");
            }
            catch_all = catch_all.or(Some(span));
        } else {
            unique(&listener, span, &mut known, check);
        }
        listeners.push(listener);
    }
    listeners
}

/// Reports a port or a socket that an earlier listener has.
fn unique(
    listener: &EgressListener,
    span: Span,
    known: &mut HashMap<String, Span>,
    check: &mut Check<'_>,
) {
    let number = listener.port.as_ref().map_or(0, |port| port.number);
    let key = match &listener.bind {
        Bind::Unix(path) => format!("socket {path}"),
        _ if number > 0 => format!("port {number}"),
        _ => return,
    };
    if let Some(first) = known.get(&key) {
        let location = check.location(*first);
        check
            .error(SC240, span, format!("{key} is listed twice"))
            .help("join their hosts")
            .related(location, "first listed here");
    } else {
        known.insert(key, span);
    }
}

fn listener(
    raw: &raw::istio::IstioEgressListener,
    span: Span,
    check: &mut Check<'_>,
) -> EgressListener {
    let capture = capture_mode(&raw.capture_mode, check);
    let port = raw.port.get().map(|port| {
        let number = port.number.get().copied();
        let socket = shared::text(&raw.bind).is_some_and(|bind| shared::unix_path(bind).is_some());
        SidecarPort {
            number: match number {
                None | Some(0) => {
                    zero(raw, port, capture, check);
                    0
                }
                Some(_) if socket => {
                    check
                        .error(SC239, raw.bind.span(), "a Unix socket takes port 0")
                        .help("write `number: 0`, or bind to an IP address");
                    0
                }
                Some(_) => scalar::port(&port.number, check).unwrap_or(0),
            },
            protocol: protocol(port, check),
            name: shared::text_or_empty(&port.name),
        }
    });
    EgressListener {
        port,
        bind: bind(&raw.bind, check),
        capture,
        hosts: hosts(&raw.hosts, span, check),
        line: check.line(span),
    }
}

/// Checks a port without a number, or with 0, which requires a socket.
fn zero(
    raw: &raw::istio::IstioEgressListener,
    port: &raw::istio::Port,
    capture: CaptureMode,
    check: &mut Check<'_>,
) {
    let location = shared::location(&port.number, raw.port.span());
    let socket = shared::text(&raw.bind).is_some_and(|bind| shared::unix_path(bind).is_some());
    if port.number.is_invalid() {
        return;
    }
    if !socket {
        check
            .error(SC238, location, "port 0 needs a unix bind")
            .help("write a number from 1 to 65535, or `bind: unix:///run/name.sock`");
    } else if capture == CaptureMode::Iptables {
        check
            .error(
                SC238,
                raw.capture_mode.span(),
                "a Unix socket cannot have traffic redirected to it",
            )
            .help("write captureMode `NONE` or `DEFAULT`");
    }
}

fn bind(field: &Field<String>, check: &mut Check<'_>) -> Bind {
    crate::validate::istio::gateway::bind(field, SC239, SC239, check)
}

fn hosts(
    field: &Field<Vec<Field<String>>>,
    around: Span,
    check: &mut Check<'_>,
) -> Vec<EgressHost> {
    if shared::list(field).is_none() {
        check
            .error(
                SC241,
                shared::location(field, around),
                "egress without hosts",
            )
            .help("write `namespace/host`; `*/*` for everything, `~/*` for nothing");
    }
    let mut hosts = Vec::new();
    let mut written = Vec::new();
    for (entry, text) in scalar::items(field, check) {
        let span = entry.span();
        if let Some(host) = host(text, span, check) {
            written.push((key(&host, check.namespace()), text.as_str(), span));
            hosts.push(host);
        }
    }
    report_covered(&written, check);
    hosts
}

/// Egress host as a lookup key: its namespace, and its name in lower case.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    namespace: EgressNamespace,
    name: String,
}

/// Returns the lookup key of an egress host. `own` is the namespace of the Sidecar, which `.` refers to for most of its
/// workloads.
fn key(host: &EgressHost, own: &str) -> Key {
    let namespace = match &host.namespace {
        EgressNamespace::Own => EgressNamespace::Only(Arc::from(own)),
        other => other.clone(),
    };
    Key {
        namespace,
        name: host.host.to_ascii_lowercase(),
    }
}

/// Warns of hosts that another entry covers. Each host looks up its possible wildcards, instead of being compared with
/// every other host.
fn report_covered(hosts: &[(Key, &str, Span)], check: &mut Check<'_>) {
    let mut first: HashMap<&Key, (usize, Span)> = HashMap::new();
    for (at, (key, _, span)) in hosts.iter().enumerate() {
        first.entry(key).or_insert((at, *span));
    }
    for (at, (key, text, span)) in hosts.iter().enumerate() {
        let mut by = covering(key).filter_map(|wider| first.get(&wider));
        if let Some((_, by)) = by.find(|(other, _)| *other != at) {
            let location = check.location(*by);
            check
                .warning(SC245, *span, format!("`{text}` adds nothing"))
                .help("remove it")
                .related(location, "this covers it already");
        }
    }
}

/// Returns the keys that cover an egress host: itself, wildcards of its name, and both for any namespace.
fn covering(key: &Key) -> impl Iterator<Item = Key> {
    let Key { namespace, name } = key;
    let is_one = matches!(
        namespace,
        EgressNamespace::Any | EgressNamespace::Only(_) | EgressNamespace::Own
    );
    let parents = name
        .match_indices('.')
        .map(|(dot, _)| format!("*{}", &name[dot..]));
    let wider = parents.chain(["*".to_owned()]).filter(move |_| is_one);
    let names = [name.clone()].into_iter().chain(wider);
    let any = is_one.then_some(EgressNamespace::Any);
    let namespaces: Vec<EgressNamespace> = [Some(namespace.clone()), any]
        .into_iter()
        .flatten()
        .collect();
    names.flat_map(move |name| {
        let of_name = namespaces.clone().into_iter();
        of_name.map(move |namespace| Key {
            namespace,
            name: name.clone(),
        })
    })
}

/// Parses an entry of `egress.hosts`, `namespace/host`.
fn host(text: &str, span: Span, check: &mut Check<'_>) -> Option<EgressHost> {
    let parts = text
        .split_once('/')
        .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
    let Some((namespace, name)) = parts else {
        check
            .error(
                SC242,
                span,
                format!("`{text}` is not of the form `namespace/host`"),
            )
            .help(
                format!("write `./{text}` for the resource's own namespace, or `*/{text}` for any")
                    .replace("//", "/"),
            );
        return None;
    };
    let known = match namespace {
        "*" => EgressNamespace::Any,
        "." => EgressNamespace::Own,
        "~" => EgressNamespace::NoNamespace,
        other => {
            let (label, without) = match other.strip_prefix('~') {
                Some(label) => (label, true),
                None => (other, false),
            };
            if !scalar::is_dns_label(label) {
                check
                    .error(SC243, span, format!("`{namespace}` is not a namespace"))
                    .help("write `*`, `.`, `~` or the name of a namespace");
            }
            if without {
                EgressNamespace::Without(Arc::from(label))
            } else {
                EgressNamespace::Only(Arc::from(label))
            }
        }
    };
    if is_partial_wildcard(name) {
        check
            .error(GW203, span, format!("partial wildcard `{name}`"))
            .help("a wildcard matches whole labels, as in `*.example.com`");
    } else if !scalar::is_wildcard_domain(name) || !(name.contains('.') || name == "*") {
        check
            .error(SC244, span, format!("`{name}` is not fully qualified"))
            .help(format!(
                "write for example `{namespace}/{name}.default.svc.cluster.local`"
            ));
    }
    Some(EgressHost {
        namespace: known,
        host: Arc::from(name),
        line: check.line(span),
    })
}
