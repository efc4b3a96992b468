//! DestinationRules with the settings of Services.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::classes::Served;
use super::entries::{Backend, Entries};
use super::nginx::ServiceSettings;
use super::objects::{GATEWAY, Objects, Translation};
use super::outcome::finding;
use crate::diagnostic::Severity;
use crate::diagnostic::codes::ingress::IG033;
use crate::kind::{Kind, Name};
use crate::span::Line;

/// Service of a namespace, and its ports, each with its Ingress and the line of the backend.
type Ports = BTreeMap<u16, (usize, Line)>;

/// Writes the DestinationRules.
pub(super) fn write(
    served: &[Served],
    entries: &Entries,
    objects: &mut Objects<'_>,
    out: &mut Translation,
) {
    let mut services: BTreeMap<Name, Ports> = BTreeMap::new();
    for entry in &entries.all {
        let one = &served[entry.ingress];
        let canaries = entry.canaries.iter().map(|(_, backend)| backend);
        for backend in canaries.chain([&entry.backend]) {
            let Backend::Service(name, port) = backend else {
                continue;
            };
            let name = Name::new(Arc::clone(one.namespace()), Arc::clone(name));
            let ports = services.entry(name.clone()).or_default();
            let (first, _) = *ports.entry(*port).or_insert((entry.ingress, entry.line));
            if served[first].nginx.service != one.nginx.service {
                let older = &served[first].object.id;
                let message = format!(
                    "{older}, which is older, has other settings of Service {name}: those count"
                );
                let found = finding(&one.object, IG033, Severity::Warning, entry.line, message);
                let help = "write the same annotations in all Ingresses of a Service";
                out.findings.push(found.with_help(Some(help.to_owned())));
            }
        }
    }
    for (name, ports) in services {
        let with_settings = ports
            .iter()
            .filter(|(_, (at, _))| !served[*at].nginx.service.is_empty());
        let with_settings: Vec<_> = with_settings.collect();
        let Some((_, (first, line))) = with_settings.first() else {
            continue;
        };
        let first = &served[*first];
        if let Some(rule) = written_rule(objects, &name) {
            let message = format!(
                "{rule} has the settings of Service {name}: those of the annotations have no effect"
            );
            let found = finding(&first.object, IG033, Severity::Warning, *line, message);
            out.findings.push(found);
            continue;
        }
        let settings = with_settings.iter().map(|(port, (at, _))| {
            let mut policy = policy(&name, &served[*at].nginx.service);
            policy["port"] = json!({"number": port});
            policy
        });
        let settings: Vec<Value> = settings.collect();
        let spec = json!({
            "host": &*name.name,
            "trafficPolicy": {"portLevelSettings": settings},
        });
        let rule = Name::new(
            Arc::clone(&name.namespace),
            format!("{GATEWAY}-{}", name.name),
        );
        objects.add((Kind::DestinationRule, rule), (Value::Null, spec), first);
    }
}

/// Returns the DestinationRule of the namespace that somebody has written for a Service.
fn written_rule(objects: &Objects<'_>, service: &Name) -> Option<String> {
    let (name, namespace) = (&service.name, &service.namespace);
    let mut rules = objects.set.destination_rules.values();
    let found = rules.find(|rule| {
        let host = &*rule.spec.host;
        rule.id.namespace == *namespace
            && host.strip_prefix(&**name).is_some_and(|rest| {
                rest.is_empty()
                    || rest
                        .strip_prefix('.')
                        .is_some_and(|rest| rest.starts_with(&**namespace))
            })
    });
    found.map(|rule| rule.id.to_string())
}

/// Returns the settings of a port of the Service `name`.
fn policy(name: &Name, service: &ServiceSettings) -> Value {
    let mut policy = json!({});
    if service.has_tls {
        policy["tls"] = backend_tls(name, service);
    }
    if let Some(balancer) = &service.balancer {
        policy["loadBalancer"] = balancer.clone();
    }
    if let Some(seconds) = service.connect_seconds {
        policy["connectionPool"] = json!({"tcp": {"connectTimeout": format!("{seconds}s")}});
    }
    policy
}

fn backend_tls(name: &Name, service: &ServiceSettings) -> Value {
    let credential = service.credential.as_ref();
    let mut tls = json!({"mode": "SIMPLE"});
    if let Some(one) = credential.filter(|one| one.has_certificate || one.verifies) {
        tls["credentialName"] = format!("kubernetes://{}/{}", name.namespace, one.name).into();
        if one.has_certificate {
            tls["mode"] = "MUTUAL".into();
        }
    }
    match credential {
        Some(one) if one.verifies => {
            let host = service.server_name.as_deref().map(str::to_owned);
            let host = host.unwrap_or_else(|| format!("{}.{}.svc", name.name, name.namespace));
            tls["subjectAltNames"] = json!([host]);
        }
        _ => tls["insecureSkipVerify"] = true.into(),
    }
    if let Some(name) = &service.server_name {
        tls["sni"] = (&**name).into();
    }
    tls
}
