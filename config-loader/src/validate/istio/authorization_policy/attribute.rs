//! Attributes of AuthorizationPolicies, and their values.

use std::sync::Arc;

use ipnet::IpNet;
use traffic::authz::{Attribute, Pattern, RequestPrincipal, Values};
use traffic::route::HeaderKey;

use super::path;
use crate::diagnostic::codes::istio::{
    AZ009, AZ010, AZ011, AZ012, AZ013, AZ014, AZ016, AZ108, AZ112, AZ113, AZ115, AZ130, AZ131,
};
use crate::diagnostic::suggest;
use crate::raw::Field;

use crate::span::Span;
use crate::validate::Check;
use crate::validate::scalar;

/// Keys of conditions without an argument.
const KEYS: [&str; 12] = [
    "source.ip",
    "remote.ip",
    "source.namespace",
    "source.serviceAccount",
    "source.principal",
    "source.trustDomain",
    "request.auth.principal",
    "request.auth.audiences",
    "request.auth.presenter",
    "destination.ip",
    "destination.port",
    "connection.sni",
];

/// Returns the attribute of a key without an argument.
fn plain(key: &str) -> Option<Attribute> {
    let claim = |name: &str| Attribute::Claim([name.into()].into());
    Some(match key {
        "source.ip" => Attribute::SourceIp,
        "remote.ip" => Attribute::RemoteIp,
        "source.namespace" => Attribute::Namespace,
        "source.serviceAccount" => Attribute::ServiceAccount,
        "source.principal" => Attribute::Principal,
        "source.trustDomain" => Attribute::TrustDomain,
        "request.auth.principal" => Attribute::RequestPrincipal,
        "request.auth.audiences" => claim("aud"),
        "request.auth.presenter" => claim("azp"),
        "destination.ip" => Attribute::DestinationIp,
        "destination.port" => Attribute::DestinationPort,
        "connection.sni" => Attribute::Sni,
        _ => return None,
    })
}

/// Keys that Istio had once, each with what says the same.
const GONE: [(&str, &str); 4] = [
    (
        "destination.namespace",
        "the namespace of the policy (`metadata.namespace`)",
    ),
    ("destination.labels", "`selector`"),
    ("destination.name", "`selector`"),
    ("destination.user", "`selector`"),
];

/// Returns the attribute of a key of a condition.
pub(super) fn of_key(key: &str, span: Span, check: &mut Check<'_>) -> Option<Attribute> {
    if key.starts_with("experimental.envoy.filters.") {
        let message = format!("there are no Envoy filters here: `{key}` has no value");
        let found = check.warning(AZ130, span, message);
        found.help("`values` never match, and `notValues` always do");
        return Some(Attribute::Absent);
    }
    if let Some(attribute) = plain(key) {
        return Some(attribute);
    }
    if let Some(name) = key.strip_prefix("request.headers") {
        return header(name, span, check);
    }
    if let Some(path) = key.strip_prefix("request.auth.claims") {
        let names = claim(path);
        if names.is_none() {
            let message = format!("`{key}` is not a claim");
            let found = check.error(AZ010, span, message);
            found.help("write `request.auth.claims[NAME]`, or `[NAME][INNER]` for a nested claim");
        }
        return names.map(Attribute::Claim);
    }
    let found = check.error(AZ009, span, format!("`{key}` is not an attribute"));
    let known = KEYS.iter().copied();
    if let Some((_, instead)) = GONE.iter().find(|(gone, _)| key.starts_with(gone)) {
        found.help(format!("use {instead}"));
    } else if let Some(near) =
        suggest::nearest(key, known.chain(["request.headers", "request.auth.claims"]))
    {
        found.help(format!("did you mean `{near}`?"));
    } else {
        found.help("write an attribute such as `source.namespace` or `request.headers[NAME]`");
    }
    None
}

fn header(argument: &str, span: Span, check: &mut Check<'_>) -> Option<Attribute> {
    let name = argument
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let known = name.and_then(|name| Some((name.to_ascii_lowercase(), HeaderKey::parse(name)?)));
    let Some((name, header)) = known else {
        let message = format!("`request.headers{argument}` is not a header");
        let found = check.error(AZ010, span, message);
        found.help("write `request.headers[NAME]`");
        return None;
    };
    let instead = match &*name {
        ":path" => Some("`paths`, which are compared without the query"),
        ":authority" | "host" => Some("`hosts`"),
        ":method" => Some("`methods`"),
        "authorization" => Some("a RequestAuthentication and `requestPrincipals`"),
        name if name.starts_with("x-forwarded-") => {
            Some("`remoteIpBlocks`, `hosts` or `principals`")
        }
        _ => None,
    };
    if let Some(instead) = instead {
        let message = format!("a condition on the header `{name}` is easy to get around");
        check
            .warning(AZ115, span, message)
            .help(format!("use {instead}"));
    }
    Some(Attribute::Header(header))
}

/// Returns the names of nested claims from `[a][b]`.
fn claim(path: &str) -> Option<Box<[Box<str>]>> {
    let inner = path.strip_prefix('[')?.strip_suffix(']')?;
    let names = inner.split("][");
    let names: Box<[Box<str>]> = names.map(Box::from).collect();
    let is_name = |name: &str| !name.is_empty() && !name.contains(['[', ']']);
    let is_path = names.iter().all(|name| is_name(name));
    is_path.then_some(names)
}

/// Returns the values of a list; `None` if it is absent or empty.
pub(in crate::validate) fn list(
    attribute: &Attribute,
    field: &Field<Vec<Field<String>>>,
    check: &mut Check<'_>,
) -> Option<Values> {
    let entries = scalar::items(field, check);
    let entries = entries
        .into_iter()
        .map(|(entry, text)| (entry.span(), text.as_str()));
    let entries: Vec<(Span, &str)> = entries.collect();
    if entries.is_empty() {
        return None;
    }
    Some(match attribute {
        Attribute::SourceIp | Attribute::RemoteIp | Attribute::DestinationIp => {
            let networks = entries
                .into_iter()
                .filter_map(|(span, text)| network(text, span, check));
            Values::Networks(networks.collect())
        }
        Attribute::DestinationPort => {
            let ports = entries
                .into_iter()
                .filter_map(|(span, text)| port(text, span, check));
            Values::Ports(ports.collect())
        }
        Attribute::RequestPrincipal => {
            let checked = texts(attribute, entries, check);
            let principals = checked.iter().map(|text| RequestPrincipal::of(text));
            Values::Principals(principals.collect())
        }
        _ => {
            let checked = texts(attribute, entries, check);
            let patterns = checked.iter().map(|text| pattern(attribute, text));
            Values::Texts(patterns.collect())
        }
    })
}

fn texts(
    attribute: &Attribute,
    entries: Vec<(Span, &str)>,
    check: &mut Check<'_>,
) -> Vec<Arc<str>> {
    let texts = entries.into_iter();
    texts
        .filter_map(|(span, value)| text(attribute, value, span, check))
        .collect()
}

/// Returns the pattern of a checked value.
fn pattern(attribute: &Attribute, text: &str) -> Pattern {
    match attribute {
        Attribute::Namespace => Pattern::Glob(text.into()),
        Attribute::ServiceAccount => Pattern::Exact(text.into()),
        Attribute::Path => Pattern::of_path(text),
        Attribute::Host { .. } => Pattern::of(&text.to_ascii_lowercase()),
        // a header without a value is there, too
        Attribute::Header(_) if text == "*" => Pattern::Present,
        _ => Pattern::of(text),
    }
}

fn network(text: &str, span: Span, check: &mut Check<'_>) -> Option<IpNet> {
    let Some(network) = scalar::subnet(text) else {
        let found = check.error(AZ011, span, format!("`{text}` is not a subnet"));
        found.help("write an IP address, or a CIDR such as `10.0.0.0/8`");
        return None;
    };
    if network.addr() != network.network() {
        let message = format!("`{text}` has bits beyond its prefix, which are ignored");
        let found = check.warning(AZ131, span, message);
        found.help(format!("write `{}`", network.trunc()));
    }
    Some(network.trunc())
}

fn port(text: &str, span: Span, check: &mut Check<'_>) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|_| digits);
    if port.is_none() {
        let found = check.error(AZ012, span, format!("`{text}` is not a port"));
        found.help(
            "write a number from 0 to 65535 as text: the port of the workload, not of its service",
        );
    }
    port
}

fn text(attribute: &Attribute, value: &str, span: Span, check: &mut Check<'_>) -> Option<Arc<str>> {
    if value.is_empty() {
        let found = check.error(AZ013, span, "a value is empty");
        found.help("write `*` for any value, or the value in `notValues` to match its absence");
        return None;
    }
    match attribute {
        Attribute::ServiceAccount => {
            let account = service_account(value, check.namespace());
            if account.is_none() {
                let message = format!("`{value}` is not a service account");
                let found = check.error(AZ014, span, message);
                found.help("write `NAMESPACE/NAME` or `NAME`, without `*`");
            }
            return account;
        }
        Attribute::TrustDomain => trust_domain(value, span, check)?,
        Attribute::Path => path::check(value, span, check)?,
        Attribute::Principal => principal(value, span, check),
        Attribute::Host { .. } if !is_host(value) => {
            let message = format!("no client sends the host `{value}`");
            let found = check.warning(AZ112, span, message);
            found.help("write the host without scheme and path, with a number as its port");
        }
        Attribute::Method if value.bytes().any(|byte| byte.is_ascii_lowercase()) => {
            let message =
                format!("methods are compared with their case: `{value}` is no usual method");
            let found = check.warning(AZ113, span, message);
            found.help(format!("write `{}`", value.to_ascii_uppercase()));
        }
        Attribute::Namespace => return Some(value.into()),
        _ => {}
    }
    let stars = value.matches('*').count();
    let is_wildcard = value.starts_with('*') || value.ends_with('*');
    if stars > usize::from(is_wildcard) && !value.contains('{') {
        let message = format!("a `*` inside `{value}` is compared as it is");
        let found = check.warning(AZ016, span, message);
        found.help("a `*` is a wildcard only at the beginning or at the end");
    }
    Some(value.into())
}

fn trust_domain(value: &str, span: Span, check: &mut Check<'_>) -> Option<()> {
    let inner = value.trim_start_matches('*').trim_end_matches('*');
    let stars = value.matches('*').count();
    if value.contains('/') || inner.contains('*') || stars > 1 {
        let message = format!("`{value}` is not a trust domain");
        let found = check.error(AZ014, span, message);
        found.help(
            "write a domain such as `cluster.local`, with at most one `*` at its beginning or end",
        );
        return None;
    }
    Some(())
}

/// Warns of a principal that no certificate has.
fn principal(value: &str, span: Span, check: &mut Check<'_>) {
    let help = if value.starts_with("spiffe://") {
        "leave out `spiffe://`"
    } else if !value.contains('*') && !is_principal(value) {
        "write `TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT`"
    } else if value.bytes().any(|byte| byte.is_ascii_uppercase()) {
        "write it in lower case, as certificates have it"
    } else {
        return;
    };
    let message = format!("no client has the identity `{value}`");
    check.warning(AZ108, span, message).help(help);
}

/// Whether clients may send such a host, as far as its form tells.
fn is_host(value: &str) -> bool {
    let port = value.rsplit_once(':').filter(|_| !value.ends_with(']'));
    let is_port = |port: &str| {
        let port = port.strip_suffix('*').unwrap_or(port);
        port.bytes().all(|byte| byte.is_ascii_digit())
    };
    !value.contains('/') && !value.contains("..") && port.is_none_or(|(_, port)| is_port(port))
}

fn is_principal(value: &str) -> bool {
    let parts: Vec<&str> = value.split('/').collect();
    matches!(*parts, [domain, "ns", namespace, "sa", account]
        if !domain.is_empty() && !namespace.is_empty() && !account.is_empty())
}

/// Returns `ns/NAMESPACE/sa/NAME` of a service account, with the policy's namespace as the default.
fn service_account(text: &str, namespace: &str) -> Option<Arc<str>> {
    let (namespace, name) = text.split_once('/').unwrap_or((namespace, text));
    let is_name = |part: &str| !part.is_empty() && !part.contains(['*', '/']);
    (text.len() <= 320 && is_name(namespace) && is_name(name))
        .then(|| format!("ns/{namespace}/sa/{name}").into())
}
