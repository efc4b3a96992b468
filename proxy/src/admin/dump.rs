//! `/config_dump`: the snapshot that requests use, and the resources that it was compiled from.
//!
//! Values of Secrets and of headers with credentials are redacted.

use serde_json::{Map, Value, json};

use super::cluster_views::clusters;
use super::view::SourcesView;
use crate::explain;
use crate::explain::secret;
use crate::identity::{Identity, MemberSettings};
use crate::snapshot::{
    Chain, Detected, Handling, HttpHosts, Listener, OpaqueRoutes, Route, Service, SideTracing,
    Snapshot, Then, TlsBytes, Tracing,
};
use traffic::filter::mirror::WHOLE;
use traffic::filter::{Action, HeaderEdit, PathChange, PathRewrite, Redirect, RedirectPort};
use traffic::route::Rule;
use traffic::route::explain::conditions;
use traffic::trace::Propagator;

/// Resources of a dump. They are the newest ones, and may be ahead of the snapshot for a moment.
#[derive(Debug)]
pub struct DumpedResources {
    /// All objects, with their locations.
    pub objects: Vec<String>,
    /// Names and keys of Secrets, with redacted values.
    pub secrets: Map<String, Value>,
}

/// Makes the dump of a snapshot.
pub fn dump(
    snapshot: &Snapshot,
    resources: DumpedResources,
    identity: &Identity,
    sources: &SourcesView,
) -> Value {
    let listeners: Vec<Value> = snapshot.listeners.values().map(|l| listener(l)).collect();
    json!({
        "generation": snapshot.generation,
        "identity": {
            "cluster": identity.cluster,
            "namespace": identity.namespace,
            "labels": identity.labels,
            "network": identity.network,
        },
        "sources": sources.applied,
        "rejected": sources.rejected,
        "remote_clusters": identity.members.iter().map(remote_cluster).collect::<Vec<_>>(),
        "tracing": snapshot.tracing.as_deref().map(tracing),
        "listeners": listeners,
        "clusters": clusters(snapshot),
        "resources": resources.objects,
        "secrets": resources.secrets,
    })
}

fn tracing(tracing: &Tracing) -> Value {
    let of_side = |side: &SideTracing| {
        let settings = &side.settings;
        let propagators = settings.propagators.iter();
        let propagators = propagators.map(|one| match one {
            Propagator::TraceContext => "tracecontext",
            Propagator::B3 => "b3",
            Propagator::B3Multi => "b3multi",
        });
        json!({
            "sampling_percent": settings.random.value(),
            "provider": side.provider,
            "propagators": propagators.collect::<Vec<_>>(),
            "propagates": settings.propagates,
            "reports_spans": settings.reports,
            "custom_tags": settings.custom_tags.iter().map(|tag| &*tag.name).collect::<Vec<_>>(),
        })
    };
    json!({
        "client": tracing.client.as_ref().map(of_side),
        "server": tracing.server.as_ref().map(of_side),
    })
}

fn remote_cluster(member: &MemberSettings) -> Value {
    let gateway = member.gateway.as_ref().map(|gateway| {
        let tls = gateway.tls.as_ref().map(|tls| {
            json!({
                "sni": tls.server_name,
                "ca_certificates": tls.authorities,
                "sends_client_certificate": tls.shows.is_some(),
            })
        });
        json!({"host": gateway.host, "port": gateway.port, "tls": tls})
    });
    json!({
        "cluster_key": member.key,
        "network": member.network,
        "locality": member.locality,
        "trust_domain": member.trust_domain,
        "gateway": gateway,
    })
}

fn detected_protocols(detected: &Detected, out: &mut Value) {
    if let Some(hosts) = &detected.http {
        out["virtual_hosts"] = virtual_hosts(hosts);
    }
    out["routes"] = opaque_routes(&detected.opaque);
    match &detected.tls {
        TlsBytes::Opaque => {}
        TlsBytes::ByName(routes) => out["tls_routes"] = opaque_routes(routes),
        TlsBytes::Mesh(mesh) => {
            out["mutual_tls"] = if mesh.strict { "strict" } else { "permissive" }.into();
        }
    }
}

fn listener(listener: &Listener) -> Value {
    let mut out = json!({
        "address": listener.key.to_string(),
        "protocols": listener.protocols,
        "sources": listener.provenance.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    match &listener.service {
        Service::Captured(intake) => out["captures"] = intake.name().into(),
        Service::Detected(detected) => detected_protocols(detected, &mut out),
        Service::HttpProxy => out["captures"] = "http_proxy".into(),
        Service::Http(hosts) => out["virtual_hosts"] = virtual_hosts(hosts),
        Service::Opaque(routes) => out["routes"] = opaque_routes(routes),
        Service::Tls(chains) => out["filter_chains"] = chains.chains.iter().map(chain).collect(),
    }
    if !listener.skipped.is_empty() {
        let skipped = listener.skipped.iter();
        let skipped =
            skipped.map(|one| json!({"source": one.provenance.to_string(), "reason": one.reason}));
        out["skipped"] = skipped.collect();
    }
    out
}

fn virtual_hosts(hosts: &HttpHosts) -> Value {
    let dumped = hosts.all().enumerate().map(|(number, host)| {
        let rules = host.routes.iter().zip(host.table.rules());
        let routes: Vec<Value> = rules.map(|(of, rule)| route(of, rule)).collect();
        let mut out =
            json!({"host": &*host.name, "rebuilt_because": host.cause.as_deref(), "routes": routes});
        if let Some(Some(wider)) = hosts.wider.get(number) {
            out["wider_host"] = (*hosts.virtual_hosts[*wider as usize].name).into();
        }
        out
    });
    dumped.collect()
}

/// Dumps a TLS server: its names, its action, and the targets of its connections or requests.
fn chain(chain: &Chain) -> Value {
    let mut out = json!({
        "server": &*chain.id,
        "server_names": chain.names.iter().map(|name| &**name).collect::<Vec<_>>(),
        "protocol": chain.protocol,
        "source": chain.provenance.to_string(),
        "tls": chain.handling.name(),
    });
    match &chain.handling {
        Handling::AutoPassthrough(routes) | Handling::Passthrough(routes) => {
            out["routes"] = opaque_routes(routes);
        }
        Handling::Terminate { then, .. } => match then {
            Then::Http(hosts) => out["virtual_hosts"] = virtual_hosts(hosts),
            Then::Opaque(routes) => out["routes"] = opaque_routes(routes),
        },
    }
    out
}

fn opaque_routes(routes: &OpaqueRoutes) -> Value {
    let texts = |list: Vec<String>| Value::from(list);
    let rules = routes.table.rules().iter().zip(&routes.routes);
    let rules = rules.map(|(rule, route)| {
        let conditions = &rule.conditions;
        let names = conditions.sni_hosts.iter().map(ToString::to_string);
        let to = conditions
            .destination_subnets
            .iter()
            .map(ToString::to_string);
        let from = conditions.source_subnets.iter().map(ToString::to_string);
        let matched = [
            ("sniHosts", names.collect::<Vec<_>>()),
            ("destinationSubnets", to.collect()),
            ("sourceSubnets", from.collect()),
        ];
        let matched = matched.into_iter().filter(|(_, list)| !list.is_empty());
        let matched: Map<String, Value> = matched
            .map(|(field, list)| (field.to_owned(), texts(list)))
            .collect();
        let entries = route.split.iter().flat_map(|split| split.entries());
        let destinations = entries
            .map(|(weight, destination)| json!({"cluster": &*destination.name, "weight": weight}));
        json!({
            "source": rule.provenance.to_string(),
            "match": matched,
            "destinations": destinations.collect::<Vec<_>>(),
        })
    });
    rules.collect()
}

fn route(route: &Route, rule: &Rule) -> Value {
    let filters = &route.filters;
    let matched: Map<String, Value> = conditions(rule)
        .into_iter()
        .map(|(field, wanted)| {
            let wanted = Value::from(secret::wanted(&field, wanted));
            (field, wanted)
        })
        .collect();
    let mut out = json!({
        "name": &*route.name,
        "source": rule.provenance.to_string(),
        "match": matched,
    });
    match &filters.action {
        Action::DirectResponse(direct) => {
            let (status, bytes) = (direct.status.as_u16(), direct.body.len());
            out["direct_response"] = json!({"status": status, "body_bytes": bytes});
        }
        Action::Redirect(to) => out["redirect"] = redirect(to),
        Action::Forward => out["destinations"] = destinations(route),
    }
    if let Some(path) = &filters.path {
        out["path_rewrite"] = rewrite(path);
    }
    if let Some(authority) = filters.authority(usize::MAX) {
        out["authority_rewrite"] = String::from_utf8_lossy(authority.as_bytes()).into();
    }
    if let Some(timeout) = filters.idle_timeout {
        out["idle_timeout"] = format!("{timeout:?}").into();
    }
    if let Some(timeout) = filters.timeout {
        out["timeout"] = format!("{timeout:?}").into();
    }
    if let Some(early) = filters.early.as_deref() {
        let (faults, cors) = explain::early::words(early);
        for (field, words) in [("fault", faults), ("cors", cors)] {
            if !words.is_empty() {
                out[field] = words.into();
            }
        }
        if let Some(limits) = &early.limits {
            out["limits"] = limits.provenance.to_string().into();
        }
        if let Some(check) = &early.check {
            out["check"] = check.settings.url().into();
        }
    }
    if let Some(retry) = &filters.retry {
        out["retries"] = json!({
            "attempts": retry.attempts,
            "retry_on": retry.conditions.words().join(","),
            "per_try_timeout": retry.per_try_timeout.map(|time| format!("{time:?}")),
            "backoff": format!("{:?}", retry.back_off.base),
        });
    }
    if let Some(mirrors) = &route.mirrors {
        let mirrors = mirrors.entries().map(|(share, mirror)| {
            let percent = f64::from(share) * 100.0 / f64::from(WHOLE);
            json!({"cluster": &*mirror.destination.name, "percent": percent})
        });
        out["mirrors"] = mirrors.collect();
    }
    edits(&mut out, route, None);
    out
}

fn destinations(route: &Route) -> Value {
    let entries = route.split.iter().flat_map(|split| split.entries());
    let entries = entries.map(|(weight, destination)| {
        let mut out = json!({"cluster": &*destination.name, "weight": weight});
        edits(&mut out, route, Some(destination.position));
        out
    });
    entries.collect()
}

fn redirect(redirect: &Redirect) -> Value {
    let (path, prefix) = match &redirect.path {
        PathChange::Keep => (None, None),
        PathChange::Prefix { with, .. } => (None, Some(with)),
        PathChange::Whole(with) => (Some(with), None),
    };
    let port = match redirect.port {
        RedirectPort::Fixed(port) => Value::from(port),
        RedirectPort::FromRequest => Value::from("FROM_REQUEST_PORT"),
        RedirectPort::Unset => Value::Null,
    };
    json!({
        "status": redirect.code.as_u16(),
        "scheme": redirect.scheme.map(|scheme| scheme.as_str()),
        "authority": redirect.authority,
        "port": port,
        "path": path,
        "prefix": prefix,
    })
}

fn rewrite(rewrite: &PathRewrite) -> Value {
    match rewrite {
        PathRewrite::Prefix { len, with } => json!({"prefix_bytes": len, "replacement": with}),
        PathRewrite::Regex { regex, .. } => json!({"regex": regex.written()}),
        PathRewrite::First { regex, with } => {
            json!({"first_match": regex.written(), "replacement": with})
        }
        PathRewrite::Whole(with) => json!({"replacement": with}),
    }
}

/// Adds the header edits of the rule, or of one of several destinations, if there are any.
fn edits(out: &mut Value, route: &Route, destination: Option<usize>) {
    let both = [
        ("request_headers", route.filters.request_edits(destination)),
        (
            "response_headers",
            route.filters.response_edits(destination),
        ),
    ];
    for (field, edits) in both {
        if !edits.is_empty() {
            out[field] = edits.iter().map(edit).collect();
        }
    }
}

fn edit(edit: &HeaderEdit<'_>) -> Value {
    let value = secret::edited(edit);
    match edit {
        HeaderEdit::Add(name, _) => json!({"add": {name.as_str(): value}}),
        HeaderEdit::Remove(name) => json!({"remove": name.as_str()}),
        HeaderEdit::Set(name, _) => json!({"set": {name.as_str(): value}}),
    }
}
