//! Namespaces whose Secrets and ConfigMaps are followed because of the Gateway API or Ingresses: an Ingress, a Gateway, a ListenerSet or a
//! BackendTLSPolicy there refers to them, or a ReferenceGrant permits that to those of other namespaces.
//!
//! A namespace stays until the proxy restarts.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::api::DynamicObject;
use serde_json::Value;

use crate::kind::Kind;
use crate::resource::networking::Ingress;
use crate::source::stream::report::Key;

/// Kinds that are followed by namespace.
const KINDS: [(Kind, &str); 2] = [(Kind::ConfigMap, "configmaps"), (Kind::Secret, "secrets")];

/// Namespaces that are followed, by kind.
#[derive(Clone, Debug)]
pub(super) struct ReferredNamespaces(Arc<Mutex<Referred>>);

#[derive(Debug, Default)]
struct Referred {
    /// Kinds that the server serves.
    served: Vec<Kind>,
    wanted: BTreeSet<(Kind, String)>,
}

impl ReferredNamespaces {
    /// Creates the namespaces of a server, with the one that is followed in any case; empty for none.
    pub(super) fn new(own: &str) -> Self {
        let kinds = KINDS.iter().filter(|_| !own.is_empty());
        let wanted = kinds.map(|(kind, _)| (*kind, own.to_owned()));
        Self(Arc::new(Mutex::new(Referred {
            wanted: wanted.collect(),
            ..Referred::default()
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Referred> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the kinds that the server serves.
    pub(super) fn serve(&self, kinds: impl Iterator<Item = Kind>) {
        self.lock().served = kinds.collect();
    }

    /// Adds the namespaces that an object makes necessary. Returns the keys of the watches of new ones.
    pub(super) fn note(&self, kind: Kind, object: &DynamicObject) -> Vec<Key> {
        let Some(namespace) = &object.metadata.namespace else {
            return Vec::new();
        };
        let mut wanted = wanted(kind, &object.data["spec"]);
        if kind == Kind::Ingress {
            let annotations = object.metadata.annotations.iter().flatten();
            wanted.extend(annotations.filter_map(|(key, _)| kind_of_annotation(key)));
        }
        let wanted = wanted.into_iter();
        let mut referred = self.lock();
        let fresh = wanted.filter(|kind| referred.wanted.insert((*kind, namespace.clone())));
        let fresh: Vec<Kind> = fresh.collect();
        let served = KINDS
            .iter()
            .filter(|(kind, _)| fresh.contains(kind) && referred.served.contains(kind));
        served
            .map(|(_, plural)| format!("{plural} in {namespace}").into())
            .collect()
    }

    /// Adds the namespace of a watch with this key.
    pub(super) fn restore(&self, key: &str) {
        for (kind, plural) in KINDS {
            let namespace = key.strip_prefix(plural);
            if let Some(namespace) = namespace.and_then(|rest| rest.strip_prefix(" in ")) {
                self.lock().wanted.insert((kind, namespace.to_owned()));
            }
        }
    }

    /// Returns the namespaces in which a kind is followed.
    pub(super) fn of(&self, kind: Kind) -> Vec<String> {
        let referred = self.lock();
        let own = referred.wanted.iter().filter(|(own, _)| *own == kind);
        own.map(|(_, namespace)| namespace.clone()).collect()
    }
}

/// Returns the kinds that are needed of the namespace of an object with this `spec`.
fn wanted(kind: Kind, spec: &Value) -> BTreeSet<Kind> {
    let mut found = BTreeSet::new();
    match kind {
        Kind::BackendTLSPolicy | Kind::KubernetesGateway | Kind::ListenerSet => {
            walk(spec, &mut found);
        }
        // its certificates are in its namespace
        Kind::Ingress if !items(&spec["tls"]).is_empty() => {
            found.insert(Kind::Secret);
        }
        Kind::ReferenceGrant => {
            let refers = |from: &Value| from["kind"] == "Gateway" || from["kind"] == "ListenerSet";
            if items(&spec["from"]).iter().any(refers) {
                named(&spec["to"], &mut found);
            }
        }
        _ => {}
    }
    found
}

/// Returns the kind of the object that an annotation of an Ingress names.
fn kind_of_annotation(key: &str) -> Option<Kind> {
    match key.strip_prefix(Ingress::NGINX)? {
        "custom-headers" => Some(Kind::ConfigMap),
        "proxy-ssl-secret" => Some(Kind::Secret),
        _ => None,
    }
}

/// Finds references to certificates.
fn walk(value: &Value, found: &mut BTreeSet<Kind>) {
    for value in items(value) {
        walk(value, found);
    }
    for (field, value) in value.as_object().into_iter().flatten() {
        match &**field {
            "caCertificateRefs" => named(value, found),
            "certificateRefs" | "clientCertificateRef" => {
                found.insert(Kind::Secret);
            }
            _ => walk(value, found),
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Adds the kinds that references name.
fn named(references: &Value, found: &mut BTreeSet<Kind>) {
    let kinds = items(references)
        .iter()
        .filter_map(|one| one["kind"].as_str());
    for name in kinds {
        let known = KINDS.iter().find(|(kind, _)| kind.as_str() == name);
        found.extend(known.map(|(kind, _)| *kind));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn own_namespace_is_not_followed_again() {
        let gateway = |namespace: &str| {
            json!({"metadata": {"name": "a", "namespace": namespace},
                "spec": {"listeners": [{"tls": {"certificateRefs": [{"name": "a"}]}}]}})
        };
        let referred = ReferredNamespaces::new("own");
        referred.serve([Kind::ConfigMap, Kind::Secret].into_iter());
        for (namespace, fresh) in [
            ("own", vec![]),
            ("shop", vec!["secrets in shop"]),
            ("shop", vec![]),
        ] {
            let object = serde_json::from_value(gateway(namespace)).unwrap();
            let keys = referred.note(Kind::KubernetesGateway, &object);
            let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
            assert_eq!(keys, fresh, "{namespace}");
        }
        assert_eq!(referred.of(Kind::Secret), ["own", "shop"]);
        assert!(ReferredNamespaces::new("").of(Kind::Secret).is_empty());
    }

    #[test]
    fn annotations_of_an_ingress_make_its_namespace_necessary() {
        let referred = ReferredNamespaces::new("own");
        referred.serve([Kind::ConfigMap, Kind::Secret].into_iter());
        for (annotation, fresh) in [
            ("app-root", vec![]),
            ("custom-headers", vec!["configmaps in shop"]),
            ("proxy-ssl-secret", vec!["secrets in shop"]),
        ] {
            let key = format!("nginx.ingress.kubernetes.io/{annotation}");
            let object = json!({"metadata": {"name": "a", "namespace": "shop", "annotations": {key: "x"}}, "spec": {}});
            let object = serde_json::from_value(object).unwrap();
            let keys = referred.note(Kind::Ingress, &object);
            let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
            assert_eq!(keys, fresh, "{annotation}");
        }
    }

    #[test]
    fn objects_of_the_gateway_api_make_namespaces_necessary() {
        let both = ["ConfigMap", "Secret"];
        for (kind, spec, expected) in [
            (
                Kind::KubernetesGateway,
                json!({"listeners": [{"protocol": "HTTP"}]}),
                &[][..],
            ),
            (
                Kind::KubernetesGateway,
                json!({"listeners": [{"tls": {"certificateRefs": [{"name": "a"}]}}]}),
                &["Secret"],
            ),
            (
                Kind::KubernetesGateway,
                json!({"tls": {"backend": {"clientCertificateRef": {"name": "a"}}, "frontend": {"perPort": [
                    {"tls": {"validation": {"caCertificateRefs": [{"kind": "ConfigMap"}]}}}]}}}),
                &both,
            ),
            (
                Kind::ListenerSet,
                json!({"listeners": [{"tls": {"certificateRefs": [{}]}}]}),
                &["Secret"],
            ),
            (
                Kind::BackendTLSPolicy,
                json!({"validation": {"caCertificateRefs": [{"kind": "ConfigMap"}, {"kind": "Pod"}]}}),
                &["ConfigMap"],
            ),
            (
                Kind::ReferenceGrant,
                json!({"from": [{"kind": "Gateway"}], "to": [{"kind": "Secret"}, {"kind": "Service"}]}),
                &["Secret"],
            ),
            (
                Kind::ReferenceGrant,
                json!({"from": [{"kind": "HTTPRoute"}], "to": [{"kind": "Secret"}]}),
                &[],
            ),
            (Kind::HTTPRoute, json!({"certificateRefs": [{}]}), &[]),
        ] {
            let found = wanted(kind, &spec);
            let found: Vec<&str> = found.iter().map(|kind| kind.as_str()).collect();
            assert_eq!(found, expected, "{spec}");
        }
    }
}
