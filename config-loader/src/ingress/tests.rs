//! Tests of the translation, by the objects in a short form.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::diagnostic::Diagnostics;
use crate::kind::{Kind, Name};
use crate::load_bytes;
use crate::resource::ResourceSet;

mod annotations;
mod classes;
mod paths;
mod tls;

/// Services of the tests.
const SERVICES: &str = "
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{name: http, port: 80}, {name: admin, port: 81}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: next, namespace: shop}, spec: {ports: [{name: http, port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: other}, spec: {ports: [{name: http, port: 80}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: headers, namespace: shop}, data: {X-Frame-Options: DENY, 'not a name': x}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pair, namespace: shop}, stringData: {tls.crt: x, tls.key: x, ca.crt: x}}
---
{apiVersion: v1, kind: Secret, metadata: {name: ca, namespace: shop}, stringData: {ca.crt: x}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: strait}, spec: {controller: strait.io/ingress-controller}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: nginx}, spec: {controller: k8s.io/ingress-nginx}}
";

/// Returns the text of an Ingress `NAMESPACE/NAME` of the class `strait`.
fn ingress(name: &str, annotations: &str, spec: &str) -> String {
    of_class("strait", name, annotations, spec)
}

fn of_class(class: &str, name: &str, annotations: &str, spec: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap();
    let annotations: Vec<String> = annotations
        .split_terminator("; ")
        .map(|one| {
            let (key, value) = one.split_once(": ").unwrap();
            format!("nginx.ingress.kubernetes.io/{key}: {}", Value::from(value))
        })
        .collect();
    let annotations = annotations.join(", ");
    format!(
        "---\n{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: {name}, namespace: {namespace}, \
         annotations: {{{annotations}}}}}, spec: {{ingressClassName: {class}, {spec}}}}}\n"
    )
}

/// Returns `rules` with one host and paths `TYPE PATH SERVICE`.
fn rules(host: &str, paths: &[&str]) -> String {
    let paths = paths.iter().map(|path| {
        let mut parts = path.split(' ');
        let (of, path, service) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let of = match of {
            "i" => "ImplementationSpecific",
            "e" => "Exact",
            _ => "Prefix",
        };
        format!("{{path: '{path}', pathType: {of}, backend: {{service: {{name: {service}, port: {{number: 80}}}}}}}}")
    });
    let paths: Vec<String> = paths.collect();
    let host = if host.is_empty() {
        String::new()
    } else {
        format!("host: '{host}', ")
    };
    format!("rules: [{{{host}http: {{paths: [{}]}}}}]", paths.join(", "))
}

fn nginx() -> IngressSettings {
    IngressSettings {
        controllers: vec![
            IngressSettings::CONTROLLER.to_owned(),
            IngressSettings::NGINX_CONTROLLER.to_owned(),
        ],
        ..IngressSettings::default()
    }
}

/// Translates a text, and checks that each object can be read. Returns the set with the objects.
fn expanded(text: &str, settings: &IngressSettings) -> (Translation, Expanded) {
    let mut found = Diagnostics::default();
    let set = load_bytes("a.yaml", format!("{text}{SERVICES}").as_bytes(), &mut found);
    assert!(!found.has_errors(), "{:?}", found.into_sorted());
    let translation = translate(&set, settings);
    let mut translator = Translator::default();
    translator.update(&Arc::new(set), Some(settings));
    let expanded = translator.expanded().clone();
    let unread = expanded.findings.len() - translation.findings.len();
    assert_eq!(unread, 0, "{:#?}", expanded.findings);
    (translation, expanded)
}

/// Returns the codes of the findings, with the messages.
fn findings(text: &str, settings: &IngressSettings) -> Vec<String> {
    let (translation, _) = expanded(text, settings);
    let found = translation.findings.iter();
    found
        .map(|one| format!("{} {}", one.code, one.message))
        .collect()
}

/// Returns the rules of all HTTPRoutes: `NAMESPACE/NAME HOST PARENTS: MATCH FILTERS -> BACKENDS`.
fn routes(text: &str, settings: &IngressSettings) -> Vec<String> {
    let (translation, _) = expanded(text, settings);
    let routes = translation
        .objects
        .iter()
        .filter(|one| one.kind == Kind::HTTPRoute);
    routes
        .flat_map(|route| short(&route.name, &route.to_value()))
        .collect()
}

fn short(name: &Name, value: &Value) -> Vec<String> {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let hosts = match texts(&value["spec"]["hostnames"]) {
        hosts if hosts.is_empty() => "-".to_owned(),
        hosts => hosts.join(","),
    };
    let parents = items(&value["spec"]["parentRefs"]);
    let parents = parents
        .iter()
        .map(|parent| match parent["sectionName"].as_str() {
            Some(section) => section.to_owned(),
            None => text(&parent["name"]).replace("strait-ingress-", "tls:"),
        });
    let parents: Vec<String> = parents.collect();
    let rules = items(&value["spec"]["rules"]);
    let rules = rules.iter().map(|rule| {
        let matches = items(&rule["matches"]);
        let matches = matches.iter().map(|one| {
            let mut out = format!(
                "{}:{}",
                text(&one["path"]["type"]),
                text(&one["path"]["value"])
            );
            if let Some(method) = one["method"].as_str() {
                out.push_str(&format!(" {method}"));
            }
            for header in items(&one["headers"]) {
                out.push_str(&format!(
                    " {}={}",
                    text(&header["name"]),
                    text(&header["value"])
                ));
            }
            out
        });
        let matches: Vec<String> = matches.collect();
        let filters = items(&rule["filters"]);
        let filters = filters
            .iter()
            .map(|filter| match text(&filter["type"]).as_str() {
                "ExtensionRef" => format!(" {}", text(&filter["extensionRef"]["name"])),
                _ => {
                    let map = filter.as_object().unwrap();
                    let (_, value) = map.iter().find(|(key, _)| *key != "type").unwrap();
                    format!(" {value}")
                }
            });
        let filters: String = filters.collect();
        let backends = items(&rule["backendRefs"]);
        let backends = backends.iter().map(|one| match &one["weight"] {
            Value::Null => format!(" {}:{}", text(&one["name"]), one["port"]),
            weight => format!(" {}:{}*{weight}", text(&one["name"]), one["port"]),
        });
        let backends: String = backends.collect();
        let retry = match &rule["retry"] {
            Value::Null => String::new(),
            retry => format!(" retry {retry}"),
        };
        format!(
            "{name} {hosts} {}: {}{filters} ->{backends}{retry}",
            parents.join(","),
            matches.join("|")
        )
    });
    rules.collect()
}
