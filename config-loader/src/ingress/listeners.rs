//! Listeners: one for HTTP, and one for each host with a certificate.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::classes::Served;
use super::objects::{GATEWAY, Objects, Translation};
use super::outcome::{finding, location};
use super::text::LINE;
use crate::catalog::hostname;
use crate::diagnostic::Severity;
use crate::diagnostic::codes::ingress::{IG010, IG020, IG021};
use crate::kind::{Kind, Name};
use crate::options::IngressSettings;
use crate::resource::ResourceSet;
use crate::resource::networking::IngressTls;
use crate::span::Line;

/// Name of the listener for HTTP.
pub(super) const HTTP: &str = "http";

/// Listeners of a set.
const LISTENERS_MAX: usize = 64;

/// Host with a certificate.
struct TlsHost {
    /// Position of its Ingress in the list of served ones.
    ingress: usize,
    /// Secret; `None` for TLS that is passed through.
    secret: Option<Arc<str>>,
    line: Line,
}

/// Listeners of all Ingresses.
pub(super) struct Listeners {
    /// Hosts with certificates; `None` for every host.
    hosts: BTreeMap<Option<Arc<str>>, TlsHost>,
    default_certificate: Option<Name>,
    namespace: Arc<str>,
}

/// Collects the hosts with certificates.
pub(super) fn collect(
    set: &ResourceSet,
    settings: &IngressSettings,
    served: &[Served],
    out: &mut Translation,
) -> Listeners {
    let mut listeners = Listeners {
        hosts: BTreeMap::new(),
        default_certificate: settings.default_certificate.clone(),
        namespace: Arc::clone(&settings.namespace),
    };
    for (ingress, one) in served.iter().enumerate() {
        if one.nginx.canary.is_some() {
            continue;
        }
        if one.nginx.passes_tls {
            for rule in &one.object.spec.rules {
                let host = TlsHost {
                    ingress,
                    secret: None,
                    line: rule.line,
                };
                listeners.hosts.entry(rule.host.clone()).or_insert(host);
            }
            continue;
        }
        for tls in &one.object.spec.tls {
            listeners.add((set, settings), (ingress, served), tls, out);
        }
    }
    listeners
}

impl Listeners {
    fn add(
        &mut self,
        (set, settings): (&ResourceSet, &IngressSettings),
        (ingress, served): (usize, &[Served]),
        tls: &IngressTls,
        out: &mut Translation,
    ) {
        let one = &served[ingress];
        let mut warn = |code, message: String, help: &str| {
            let found = finding(&one.object, code, Severity::Warning, tls.line, message);
            out.findings.push(found.with_help(Some(help.to_owned())));
        };
        let Some(secret) = &tls.secret else {
            if settings.default_certificate.is_none() {
                let message = "`tls` has no `secretName`, and there is no default certificate";
                let help = "write a `secretName`, or use `--ingress-default-certificate`";
                warn(IG021, message.to_owned(), help);
            }
            return;
        };
        let name = Name::new(Arc::clone(one.namespace()), Arc::clone(secret));
        if !set.secrets.contains_key(&name) {
            let message = format!(
                "Secret {name} does not exist or cannot be read: handshakes for its hosts fail"
            );
            warn(
                IG020,
                message,
                "create the Secret, and let the proxy read it",
            );
        }
        for host in hosts_of(one, tls) {
            let line = tls.line;
            if let Some(first) = self.hosts.get(&host) {
                let older = &served[first.ingress];
                let is_same =
                    first.secret.as_ref() == Some(secret) && older.namespace() == one.namespace();
                if !is_same {
                    let host = host.as_deref().unwrap_or("every host");
                    let message = format!(
                        "{host} has a certificate in {}, which is older",
                        older.object.id
                    );
                    let mut found = finding(&one.object, IG010, Severity::Warning, line, message);
                    found.related(
                        location(&older.object, first.line),
                        "the certificate that counts",
                    );
                    out.findings.push(found);
                }
                continue;
            }
            let secret = Some(Arc::clone(secret));
            self.hosts.insert(
                host,
                TlsHost {
                    ingress,
                    secret,
                    line,
                },
            );
        }
    }

    /// Whether requests for a host come with TLS.
    pub(super) fn has_tls(&self, host: Option<&str>) -> bool {
        let covers = |known: &Option<Arc<str>>| match (known, host) {
            (None, _) => true,
            (Some(known), Some(host)) => {
                hostname::intersection(known, host).is_some_and(|both| both == host)
            }
            (Some(_), None) => false,
        };
        let mut terminated = self.hosts.iter().filter(|(_, one)| one.secret.is_some());
        terminated.any(|(known, _)| covers(known))
    }

    /// Closes the Ingresses that demand client certificates of a host whose listener does not.
    pub(super) fn close_unverified(&self, served: &mut [Served]) {
        let serving = |host: Option<&str>| {
            let covers = |known: &Option<Arc<str>>| match (known, host) {
                (None, _) => true,
                (Some(known), Some(host)) => {
                    hostname::intersection(known, host).is_some_and(|both| both == host)
                }
                (Some(_), None) => false,
            };
            let all = self.hosts.iter().filter(|(known, _)| covers(known));
            let longest = all.max_by_key(|(known, _)| known.as_deref().map(hostname::specificity));
            Some(longest?.1.ingress)
        };
        let mut open = Vec::new();
        for (ingress, one) in served.iter().enumerate() {
            let hosts = one
                .object
                .spec
                .rules
                .iter()
                .map(|rule| rule.host.as_deref());
            let mut hosts = hosts.chain(one.nginx.aliases.iter().map(|alias| Some(&**alias)));
            let is_open = |host| {
                let owner = serving(host).map(|at| &served[at]);
                owner.is_some_and(|owner| {
                    owner.nginx.clients != one.nginx.clients || owner.namespace() != one.namespace()
                })
            };
            if one.nginx.clients.is_some() && hosts.any(is_open) {
                open.push(ingress);
            }
        }
        for ingress in open {
            served[ingress].nginx.close(
                "auth-tls-secret",
                "another Ingress has the certificate of a host",
            );
        }
    }

    /// Returns the references of the listeners that serve a host with TLS.
    pub(super) fn tls_parents(&self, host: Option<&str>, served: &[Served]) -> Vec<Value> {
        let shares = |known: &Option<Arc<str>>| match (known, host) {
            (None, _) => true,
            (Some(known), Some(host)) => hostname::intersection(known, host).is_some(),
            (Some(_), None) => false,
        };
        let terminated = self.hosts.iter().filter(|(_, one)| one.secret.is_some());
        let sets = terminated.filter(|(known, _)| shares(known));
        let mut names: Vec<Name> = sets
            .map(|(_, one)| set_name(&served[one.ingress]))
            .collect();
        names.extend(self.default_set());
        names.sort();
        names.dedup();
        names.iter().map(set_parent).collect()
    }

    /// Returns the reference of the listener for HTTP.
    pub(super) fn http_parent(&self) -> Value {
        json!({"name": GATEWAY, "namespace": &*self.namespace, "sectionName": HTTP})
    }

    /// Returns the reference of the listeners of an Ingress that passes TLS through.
    pub(super) fn passthrough_parent(&self, one: &Served) -> Value {
        set_parent(&set_name(one))
    }

    fn default_set(&self) -> Option<Name> {
        let certificate = self.default_certificate.as_ref()?;
        Some(Name::new(
            Arc::clone(&certificate.namespace),
            format!("{GATEWAY}.default"),
        ))
    }

    /// Writes the Gateway and its ListenerSets.
    pub(super) fn write(&self, served: &[Served], objects: &mut Objects<'_>) {
        let Some(first) = served.first() else {
            return;
        };
        let class = match &objects.settings.gateway_controller {
            Some(controller) => {
                let name = Name::new("default", GATEWAY);
                let spec = json!({"controllerName": &**controller});
                objects.add((Kind::GatewayClass, name), (Value::Null, spec), first);
                GATEWAY
            }
            None => "strait",
        };
        let all = json!({"namespaces": {"from": "All"}});
        let mut spec = json!({
            "gatewayClassName": class,
            "allowedListeners": all,
            "listeners": [{"name": HTTP, "protocol": "HTTP", "port": 80, "allowedRoutes": all}],
        });
        let addresses = objects.settings.addresses.iter();
        let addresses = addresses.map(|ip| json!({"value": ip.to_string()}));
        let addresses: Vec<Value> = addresses.collect();
        if !addresses.is_empty() {
            spec["addresses"] = addresses.into();
        }
        let name = Name::new(Arc::clone(&self.namespace), GATEWAY);
        objects.add((Kind::KubernetesGateway, name), (Value::Null, spec), first);
        for (ingress, one) in served.iter().enumerate() {
            let own = self
                .hosts
                .iter()
                .filter(|(_, host)| host.ingress == ingress);
            let mut own: Vec<_> = own.collect();
            own.sort_by_key(|(_, host)| host.line.0);
            let listeners = own.iter().enumerate().map(|(at, (host, tls))| {
                let mut listener = listener(at, host.as_deref(), tls, one);
                listener[LINE] = tls.line.0.into();
                listener
            });
            let listeners: Vec<Value> = listeners.take(LISTENERS_MAX).collect();
            if !listeners.is_empty() {
                self.write_set(set_name(one), listeners, objects, one);
            }
        }
        if let (Some(name), Some(certificate)) = (self.default_set(), &self.default_certificate)
            && !self.hosts.contains_key(&None)
        {
            let listener = json!({
                "name": "https", "protocol": "HTTPS", "port": 443, "allowedRoutes": all,
                "tls": {"certificateRefs": [{"name": &*certificate.name}]},
            });
            self.write_set(name, vec![listener], objects, first);
        }
    }

    fn write_set(
        &self,
        name: Name,
        listeners: Vec<Value>,
        objects: &mut Objects<'_>,
        one: &Served,
    ) {
        let spec = json!({
            "parentRef": {"name": GATEWAY, "namespace": &*self.namespace},
            "listeners": listeners,
        });
        objects.add((Kind::ListenerSet, name), (Value::Null, spec), one);
    }
}

/// Returns the hosts of a certificate; `None` for every host.
fn hosts_of(one: &Served, tls: &IngressTls) -> Vec<Option<Arc<str>>> {
    let rules = one.object.spec.rules.iter();
    let aliases = one.nginx.aliases.iter().cloned().map(Some);
    let mut hosts: Vec<Option<Arc<str>>> = match tls.hosts.is_empty() {
        true => rules.map(|rule| rule.host.clone()).chain(aliases).collect(),
        false => tls
            .hosts
            .iter()
            .map(|host| Some(Arc::clone(&host.value)))
            .collect(),
    };
    if hosts.is_empty() {
        hosts.push(None);
    }
    hosts
}

fn set_name(one: &Served) -> Name {
    let id = &one.object.id;
    Name::new(Arc::clone(&id.namespace), format!("{GATEWAY}-{}", id.name))
}

fn set_parent(name: &Name) -> Value {
    json!({
        "group": "gateway.networking.k8s.io", "kind": "ListenerSet",
        "name": &*name.name, "namespace": &*name.namespace,
    })
}

fn listener(at: usize, host: Option<&str>, tls: &TlsHost, one: &Served) -> Value {
    let mut listener = json!({
        "name": format!("https-{at}"),
        "port": 443,
        "allowedRoutes": {"namespaces": {"from": "All"}},
    });
    if let Some(host) = host {
        listener["hostname"] = host.into();
    }
    match &tls.secret {
        None => {
            listener["protocol"] = "TLS".into();
            listener["tls"] = json!({"mode": "Passthrough"});
        }
        Some(secret) => {
            listener["protocol"] = "HTTPS".into();
            listener["tls"] = json!({"certificateRefs": [{"name": &**secret}]});
            if let Some(clients) = &one.nginx.clients {
                let mode = match clients.is_optional {
                    true => "OPTIONAL_MUTUAL",
                    false => "MUTUAL",
                };
                listener["tls"]["options"] = json!({
                    "gateway.istio.io/tls-terminate-mode": mode,
                    "strait.io/client-ca-secret": &*clients.secret,
                });
            }
        }
    }
    listener
}
