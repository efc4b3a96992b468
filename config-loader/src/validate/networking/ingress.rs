//! Ingress: the checks of the Kubernetes API.

use std::sync::Arc;

use crate::diagnostic::codes::ingress::{IG101, IG102, IG103};
use crate::raw::Field;
use crate::raw::networking as raw;
use crate::resource::istio::Lined;
use crate::resource::networking::{
    BackendPort, Ingress, IngressAnnotation, IngressBackend, IngressPath, IngressRule, IngressTls,
    PathType,
};
use crate::resource::shared_text;
use crate::span::Span;
use crate::validate::{Check, api, scalar};

const PATH_TYPES: [(&str, PathType); 3] = [
    ("Exact", PathType::Exact),
    ("ImplementationSpecific", PathType::ImplementationSpecific),
    ("Prefix", PathType::Prefix),
];

/// Checks an Ingress.
pub fn ingress(raw: &raw::Ingress, check: &mut Check<'_>) -> Ingress {
    if !raw.default_backend.is_set() && !raw.rules.is_set() {
        let message = "either `defaultBackend` or `rules` must be specified";
        let found = check.error(IG101, check.body(), message);
        found.help("write `rules`, or a `defaultBackend`");
    }
    let rules = scalar::items(&raw.rules, check);
    let rules: Vec<IngressRule> = rules
        .into_iter()
        .filter_map(|(entry, raw)| rule(raw, entry.span(), check))
        .collect();
    let tls = scalar::items(&raw.tls, check);
    let tls = tls.into_iter().map(|(entry, raw)| IngressTls {
        hosts: tls_hosts(raw, check),
        secret: api::some_text(&raw.secret_name),
        line: check.line(entry.span()),
    });
    let tls = tls.collect();
    let default_backend = raw.default_backend.get().and_then(|written| {
        let span = raw.default_backend.span();
        backend(written, span, check)
    });
    Ingress {
        class: api::some_text(&raw.ingress_class_name),
        default_backend,
        tls,
        rules,
        annotations: annotations(check),
    }
}

fn annotations(check: &Check<'_>) -> Vec<IngressAnnotation> {
    let all = check.annotations().of_ingress();
    all.map(|(key, span, value)| IngressAnnotation {
        key: shared_text(key),
        value: value
            .get()
            .map_or_else(|| Arc::from(""), |text| shared_text(text)),
        line: check.line(span),
    })
    .collect()
}

fn tls_hosts(raw: &raw::IngressTls, check: &mut Check<'_>) -> Vec<Lined<Arc<str>>> {
    let hosts = scalar::items(&raw.hosts, check);
    let hosts = hosts.into_iter().filter_map(|(entry, _)| {
        Some(Lined {
            value: host(entry, check)?,
            line: check.line(entry.span()),
        })
    });
    hosts.collect()
}

/// Returns a host. An empty one is none.
fn host(field: &Field<String>, check: &mut Check<'_>) -> Option<Arc<str>> {
    let text = field.get().filter(|text| !text.is_empty())?;
    let name = text.strip_prefix("*.").unwrap_or(text);
    if scalar::is_dns_subdomain(name) && scalar::ip(text).is_none() {
        return Some(shared_text(text));
    }
    let found = check.error(IG102, field.span(), format!("`{text}` is not a host"));
    found.help(if scalar::ip(text).is_some() {
        "write a DNS name instead of an IP address"
    } else if text.contains('*') {
        "a wildcard is the whole first label, such as `*.example.com`"
    } else if text.contains(':') {
        "a host has no port and no scheme"
    } else {
        "write a DNS name in lower case, such as `www.example.com`"
    });
    None
}

fn rule(raw: &raw::IngressRule, span: Span, check: &mut Check<'_>) -> Option<IngressRule> {
    let host = host(&raw.host, check);
    let http = raw.http.get()?;
    if http.paths.get().is_none_or(Vec::is_empty) && !http.paths.is_invalid() {
        let parent = raw.http.span();
        api::required(parent, "paths", "", IG101, check);
    }
    let paths = scalar::items(&http.paths, check);
    let paths: Vec<IngressPath> = paths
        .into_iter()
        .filter_map(|(entry, raw)| path(raw, entry.span(), check))
        .collect();
    (!paths.is_empty()).then(|| IngressRule {
        host,
        paths,
        line: check.line(span),
    })
}

fn path(raw: &raw::HttpPath, span: Span, check: &mut Check<'_>) -> Option<IngressPath> {
    if !raw.path_type.is_set() {
        let found = api::required(span, "pathType", "", IG101, check);
        found.help("write `Prefix`, `Exact` or `ImplementationSpecific`");
    }
    let path_type = api::enum_of(&raw.path_type, &PATH_TYPES, check);
    let text = raw.path.get().map_or("", String::as_str);
    if let Some(path_type) = path_type {
        check_path(text, path_type, raw, span, check);
    }
    let found = match raw.backend.get() {
        Some(written) => backend(written, raw.backend.span(), check),
        None if raw.backend.is_invalid() => None,
        None => {
            api::required(span, "backend", "", IG101, check);
            None
        }
    };
    Some(IngressPath {
        path: shared_text(if text.is_empty() { "/" } else { text }),
        path_type: path_type?,
        backend: found?,
        line: check.line(span),
    })
}

fn check_path(
    text: &str,
    path_type: PathType,
    raw: &raw::HttpPath,
    span: Span,
    check: &mut Check<'_>,
) {
    let span = if raw.path.is_set() {
        raw.path.span()
    } else {
        span
    };
    let is_specific = path_type == PathType::ImplementationSpecific;
    if !(text.starts_with('/') || is_specific && text.is_empty()) {
        let message = format!("`{text}` is not an absolute path");
        check.error(IG102, span, message).help("begin it with `/`");
        return;
    }
    let wrong = ["//", "/./", "/../", "%2f", "%2F"];
    let wrong = wrong.into_iter().find(|part| text.contains(part));
    let ends = ["/..", "/."].into_iter().find(|end| text.ends_with(end));
    if let Some(part) = wrong.or(ends).filter(|_| !is_specific) {
        let message = format!("a path of the type `{}` has `{part}`", path_type.as_str());
        let found = check.error(IG102, span, message);
        found.help("write the path in its normal form");
    }
}

fn backend(raw: &raw::IngressBackend, span: Span, check: &mut Check<'_>) -> Option<IngressBackend> {
    let line = check.line(span);
    match (raw.service.get(), raw.resource.get()) {
        (Some(service), None) => {
            let parent = raw.service.span();
            api::require_text(&service.name, parent, "name", IG101, check);
            Some(IngressBackend::Service {
                name: api::some_text(&service.name)?,
                port: port(service, parent, check)?,
                line,
            })
        }
        (None, Some(resource)) => {
            let text = |field: &Field<String>| field.get().cloned().unwrap_or_default();
            let object = format!("{} {}", text(&resource.kind), text(&resource.name));
            let object = object.into();
            Some(IngressBackend::Resource { object, line })
        }
        (Some(_), Some(_)) => {
            let message = "a backend is a `service` or a `resource`, not both";
            check.error(IG103, span, message).help("remove one of them");
            None
        }
        (None, None) => {
            if !raw.service.is_invalid() && !raw.resource.is_invalid() {
                api::required(span, "service", "", IG101, check);
            }
            None
        }
    }
}

fn port(service: &raw::ServiceBackend, span: Span, check: &mut Check<'_>) -> Option<BackendPort> {
    let Some(port) = service.port.get() else {
        if !service.port.is_invalid() {
            api::required(span, "port", "", IG101, check);
        }
        return None;
    };
    match (api::some_text(&port.name), port.number.get()) {
        (Some(name), None) => Some(BackendPort::Name(name)),
        (None, Some(_)) => api::port(&port.number, check).map(BackendPort::Number),
        (Some(_), Some(_)) => {
            let message = "a port has a `name` or a `number`, not both";
            let found = check.error(IG103, service.port.span(), message);
            found.help("remove one of them");
            None
        }
        (None, None) => {
            if !port.name.is_invalid() && !port.number.is_invalid() {
                api::required(service.port.span(), "number", "", IG101, check);
            }
            None
        }
    }
}
