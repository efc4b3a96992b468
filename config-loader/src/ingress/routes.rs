//! Routes: an HTTPRoute for each host of an Ingress, and a TLSRoute where TLS is passed through.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::classes::Served;
use super::entries::{Backend, Entries, Entry, PathKey, backend};
use super::listeners::Listeners;
use super::nginx::Nginx;
use super::objects::{Objects, Translation};
use super::rule_parts::{
    any_path, deciding_headers, not_found, path_match, response, url_redirect, with_groups,
    without_groups,
};
use super::text::LINE;
use crate::kind::{Kind, Name};
use crate::span::Line;

/// Rules of an HTTPRoute.
const RULES_MAX: usize = 16;

/// Path that certificate authorities ask for over HTTP.
const ACME: &str = "/.well-known/acme-challenge/";

/// Longest part of the name of an Ingress in the name of a route.
const NAME_MAX: usize = 200;

/// Methods that ingress-nginx retries only with `non_idempotent`.
const NOT_RETRIED: [&str; 2] = ["PATCH", "POST"];

/// Host of an Ingress.
type Host = Option<Arc<str>>;

/// Writes the routes of all Ingresses.
pub(super) fn write(
    served: &[Served],
    entries: &Entries,
    listeners: &Listeners,
    objects: &mut Objects<'_>,
    out: &mut Translation,
) {
    // the oldest Ingress with a host answers what no path of the host matches
    let mut answered: BTreeSet<Host> = entries.whole.clone();
    for ingress in 0..served.len() {
        let mut hosts: Vec<Host> = Vec::new();
        let own = entries.all.iter().filter(|entry| entry.ingress == ingress);
        let own: Vec<&Entry> = own.collect();
        for entry in &own {
            if !hosts.contains(&entry.host) {
                hosts.push(entry.host.clone());
            }
        }
        let writer = Writer {
            served,
            ingress,
            listeners,
        };
        let default = writer.default_backend(objects, out);
        for host in hosts {
            let own = own.iter().copied().filter(|entry| entry.host == host);
            let mut parts = Parts::default();
            own.for_each(|entry| writer.entry(entry, &mut parts));
            if host.is_some() && answered.insert(host.clone()) {
                parts.served.push(match &default {
                    Some((backend, line)) => writer.rule(&any_path(), backend, *line),
                    None => not_found(),
                });
            }
            writer.app_root(&host, entries, &mut parts);
            writer.write(&host, parts, objects);
        }
        if let Some((backend, line)) = &default
            && answered.insert(None)
        {
            let parts = Parts {
                served: vec![writer.rule(&any_path(), backend, *line)],
                ..Parts::default()
            };
            writer.write(&None, parts, objects);
        }
        writer.www(entries, objects);
        writer.passthrough(entries, objects);
    }
}

/// Rules of a host.
#[derive(Default)]
struct Parts {
    /// Rules of requests that are served.
    served: Vec<Value>,
    /// Rules of requests that are served over TLS.
    secured: Vec<Value>,
    /// Rules that redirect requests over HTTP.
    redirected: Vec<Value>,
}

/// Writer of the routes of one Ingress.
struct Writer<'a> {
    served: &'a [Served],
    ingress: usize,
    listeners: &'a Listeners,
}

impl Writer<'_> {
    fn one(&self) -> &Served {
        &self.served[self.ingress]
    }

    fn nginx(&self) -> &Nginx {
        &self.one().nginx
    }

    fn default_backend(
        &self,
        objects: &Objects<'_>,
        out: &mut Translation,
    ) -> Option<(Backend, Line)> {
        use crate::resource::networking::IngressBackend::{Resource, Service};
        let written = self.one().object.spec.default_backend.as_ref();
        let written = written.filter(|_| self.nginx().canary.is_none())?;
        let (Resource { line, .. } | Service { line, .. }) = written;
        Some((backend(objects.set, written, self.one(), out), *line))
    }

    /// Adds the rules of a path.
    fn entry(&self, entry: &Entry, parts: &mut Parts) {
        let mut rules = Vec::new();
        let nginx = self.nginx();
        if let Some(redirect) = &nginx.redirect {
            rules.push(self.redirect_rule(entry, url_redirect(redirect)));
        } else {
            for canary in &entry.canaries {
                self.canary_rules(entry, canary, &mut rules);
            }
            rules.extend(self.weighted_rules(entry));
        }
        match self.redirects_to_https(entry) {
            false => parts.served.extend(rules),
            true => {
                let https = json!({"scheme": "https", "statusCode": 308});
                let plain = self.redirect_rule(entry, https);
                parts.redirected.push(plain);
                parts.secured.extend(rules);
            }
        }
    }

    fn redirects_to_https(&self, entry: &Entry) -> bool {
        let nginx = self.nginx();
        let is_challenge = |path: &str| path.starts_with(ACME);
        let (PathKey::Exact(path) | PathKey::Prefix(path) | PathKey::Expression(path)) =
            &entry.path;
        if is_challenge(path) {
            return false;
        }
        let has_tls = self.listeners.has_tls(entry.host.as_deref());
        let default = self.one().is_of_nginx;
        let wants = nginx.redirects_to_https.unwrap_or(default);
        nginx.forces_https || nginx.clients.is_some() || (wants && has_tls)
    }

    fn redirect_rule(&self, entry: &Entry, redirect: Value) -> Value {
        let filters = match self.nginx().is_closed {
            true => vec![response(500)],
            false => vec![json!({"type": "RequestRedirect", "requestRedirect": redirect})],
        };
        json!({
            LINE: entry.line.0,
            "matches": [{"path": path_match(&entry.path)}],
            "filters": filters,
        })
    }

    /// Adds the rules in which a header or a cookie decides about a canary.
    fn canary_rules(&self, entry: &Entry, canary: &(usize, Backend), rules: &mut Vec<Value>) {
        let (at, canary_backend) = canary;
        let Some(settings) = &self.served[*at].nginx.canary else {
            return;
        };
        for (header, is_chosen) in deciding_headers(settings) {
            let backend = if is_chosen {
                canary_backend
            } else {
                &entry.backend
            };
            let mut rule = self.rule(&entry.path, backend, entry.line);
            if let Some(matches) = rule["matches"].as_array_mut() {
                for one in matches {
                    one["headers"] = json!([header.clone()]);
                }
            }
            rules.push(rule);
        }
    }

    /// Returns the rules in which weights decide, without retries of some methods if there are retries.
    fn weighted_rules(&self, entry: &Entry) -> Vec<Value> {
        let mut rule = self.rule(&entry.path, &entry.backend, entry.line);
        let canaries = entry.canaries.iter().filter_map(|(at, backend)| {
            let canary = self.served[*at].nginx.canary.as_ref()?;
            let (weight, total) = canary.share();
            (weight > 0).then_some((backend, weight, total))
        });
        let canaries: Vec<(&Backend, u32, u32)> = canaries.collect();
        if let Some((backend, weight, total)) = canaries.first()
            && let (Some(backends), Backend::Service(name, port)) =
                (rule["backendRefs"].as_array_mut(), backend)
        {
            if let Some(stable) = backends.first_mut() {
                stable["weight"] = (total - weight).into();
            }
            backends.push(json!({"name": &**name, "port": port, "weight": weight}));
        }
        let Some(retry) = self
            .nginx()
            .retry
            .as_ref()
            .filter(|_| !self.nginx().is_closed)
        else {
            return vec![rule];
        };
        let mut without = None;
        if !retry.all_methods && retry.attempts > 0 {
            let matches = NOT_RETRIED
                .iter()
                .map(|method| json!({"path": path_match(&entry.path), "method": method}));
            let mut other = rule.clone();
            other["matches"] = matches.collect();
            without = Some(other);
        }
        rule["retry"] = match retry.codes.is_empty() {
            true => json!({"attempts": retry.attempts}),
            false => json!({"attempts": retry.attempts, "codes": retry.codes}),
        };
        without.into_iter().chain([rule]).collect()
    }

    /// Returns a rule that sends the requests of a path to a backend.
    fn rule(&self, path: &PathKey, backend: &Backend, line: Line) -> Value {
        let mut rule = json!({LINE: line.0, "matches": [{"path": path_match(path)}]});
        let nginx = self.nginx();
        let status = match backend {
            _ if nginx.is_closed => Some(500),
            Backend::Status(status) => Some(*status),
            Backend::Service(..) => None,
        };
        if let Some(status) = status {
            rule["filters"] = json!([response(status)]);
            return rule;
        }
        let filters = self.filters(path);
        if !filters.is_empty() {
            rule["filters"] = filters.into();
        }
        if let Backend::Service(name, port) = backend {
            rule["backendRefs"] = json!([{"name": &**name, "port": port}]);
        }
        rule
    }

    fn filters(&self, path: &PathKey) -> Vec<Value> {
        let (nginx, own) = (self.nginx(), &self.nginx().filters);
        let mut filters = Vec::new();
        if let Some(cors) = &own.cors {
            filters.push(json!({"type": "CORS", "cors": cors}));
        }
        if let Some(prefix) = &own.forwarded_prefix {
            filters.push(
                json!({"type": "RequestHeaderModifier", "requestHeaderModifier": {
                    "set": [{"name": "X-Forwarded-Prefix", "value": prefix}],
                }}),
            );
        }
        if !own.response_headers.is_empty() {
            let headers = own.response_headers.iter();
            let set = headers.map(|(name, value)| json!({"name": &**name, "value": &**value}));
            let set: Vec<Value> = set.collect();
            filters.push(
                json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": {
                    "set": set,
                }}),
            );
        }
        let mut rewrite = Map::new();
        if let Some(host) = &own.host {
            rewrite.insert("hostname".to_owned(), host.as_str().into());
        }
        // groups of expressions are for `strait.io/rewrite-path`
        if let (Some(target), false) = (&nginx.rewrite, matches!(path, PathKey::Expression(_))) {
            let target = without_groups(target);
            let path = json!({"type": "ReplaceFullPath", "replaceFullPath": target});
            rewrite.insert("path".to_owned(), path);
        }
        if !rewrite.is_empty() {
            filters.push(json!({"type": "URLRewrite", "urlRewrite": rewrite}));
        }
        if let Some((name, port)) = &own.mirror {
            filters.push(json!({"type": "RequestMirror", "requestMirror": {
                "backendRef": {"name": name, "port": port},
            }}));
        }
        filters
    }

    /// Adds the redirect of `/`.
    fn app_root(&self, host: &Host, entries: &Entries, parts: &mut Parts) {
        let target = self.nginx().app_root.as_ref();
        let Some(target) = target.filter(|_| !self.nginx().is_closed) else {
            return;
        };
        let path = PathKey::Exact(Arc::from("/"));
        let mut all = entries.all.iter();
        if all.any(|entry| entry.host == *host && entry.path == path) {
            return;
        }
        let rule = json!({
            "matches": [{"path": path_match(&path)}],
            "filters": [{"type": "RequestRedirect", "requestRedirect": {
                "path": {"type": "ReplaceFullPath", "replaceFullPath": &**target}, "statusCode": 302,
            }}],
        });
        match parts.secured.is_empty() {
            true => parts.served.push(rule),
            false => parts.secured.push(rule),
        }
    }

    /// Writes the HTTPRoutes of a host.
    fn write(&self, host: &Host, parts: Parts, objects: &mut Objects<'_>) {
        let http = self.listeners.http_parent();
        let tls = self.listeners.tls_parents(host.as_deref(), self.served);
        let both: Vec<Value> = std::iter::once(http.clone()).chain(tls.clone()).collect();
        let all = [
            (parts.served, both),
            (parts.secured, tls),
            (parts.redirected, vec![http]),
        ];
        for (rules, parents) in all {
            for rules in rules.chunks(RULES_MAX) {
                self.write_route(host, rules, &parents, objects);
            }
        }
    }

    fn write_route(
        &self,
        host: &Host,
        rules: &[Value],
        parents: &[Value],
        objects: &mut Objects<'_>,
    ) {
        if parents.is_empty() {
            return;
        }
        let mut annotations: Map<String, Value> = Map::new();
        let has_backends = rules.iter().any(|rule| rule.get("backendRefs").is_some());
        if has_backends {
            let own = self.nginx().annotations.iter();
            annotations.extend(own.map(|(key, value)| ((*key).to_owned(), value.as_str().into())));
            annotations.insert("strait.io/missing-backend".to_owned(), "503".into());
        }
        let is_expression =
            |rule: &Value| rule["matches"][0]["path"]["type"] == "RegularExpression";
        if rules.iter().any(is_expression) {
            annotations.insert("strait.io/path-expressions".to_owned(), "prefix".into());
            let target = self.nginx().rewrite.as_ref().filter(|_| has_backends);
            if let Some(target) = target {
                let target = with_groups(target);
                annotations.insert("strait.io/rewrite-path".to_owned(), target.into());
            }
        }
        let mut spec = json!({"parentRefs": parents});
        if let Some(host) = host {
            spec["hostnames"] = json!([&**host]);
            if host.starts_with("*.") {
                annotations.insert("strait.io/wildcard".to_owned(), "one-label".into());
            }
        }
        spec["rules"] = rules.into();
        let id = &self.one().object.id;
        let name: String = id.name.chars().take(NAME_MAX).collect();
        let name = Name::new(Arc::clone(&id.namespace), name.trim_end_matches(['-', '.']));
        objects.add(
            (Kind::HTTPRoute, name),
            (annotations.into(), spec),
            self.one(),
        );
    }

    /// Writes the redirects between names with and without `www.`.
    fn www(&self, entries: &Entries, objects: &mut Objects<'_>) {
        let nginx = self.nginx();
        if !nginx.redirects_www || nginx.canary.is_some() || nginx.is_closed {
            return;
        }
        for rule in &self.one().object.spec.rules {
            let Some(host) = rule.host.as_deref().filter(|host| !host.starts_with("*.")) else {
                continue;
            };
            let other: Arc<str> = match host.strip_prefix("www.") {
                Some(bare) => Arc::from(bare),
                None => format!("www.{host}").into(),
            };
            let other = Some(other);
            if entries.all.iter().any(|entry| entry.host == other) {
                continue;
            }
            let redirect = json!({
                LINE: rule.line.0,
                "filters": [{"type": "RequestRedirect", "requestRedirect": {"hostname": host, "statusCode": 308}}],
            });
            let parts = Parts {
                served: vec![redirect],
                ..Parts::default()
            };
            self.write(&other, parts, objects);
        }
    }

    /// Writes the TLSRoutes of hosts whose TLS is passed through.
    fn passthrough(&self, entries: &Entries, objects: &mut Objects<'_>) {
        if !self.nginx().passes_tls || self.nginx().is_closed {
            return;
        }
        let mut seen: BTreeSet<&Host> = BTreeSet::new();
        let own = entries
            .all
            .iter()
            .filter(|entry| entry.ingress == self.ingress);
        for entry in own {
            if let (Some(host), Backend::Service(name, port)) = (&entry.host, &entry.backend)
                && seen.insert(&entry.host)
            {
                let spec = json!({
                    "parentRefs": [self.listeners.passthrough_parent(self.one())],
                    "hostnames": [&**host],
                    "rules": [{LINE: entry.line.0, "backendRefs": [{"name": &**name, "port": port}]}],
                });
                let name = self.one().object.id.to_name();
                objects.add((Kind::TLSRoute, name), (Value::Null, spec), self.one());
            }
        }
    }
}
