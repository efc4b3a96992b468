//! Ingresses as objects of the Gateway API and policies: the only translation, which proxies serve and `strait migrate`
//! prints.
//!
//! [`translate`] is pure. Each of its objects is a text in which rules have the lines that they have in their Ingress, and
//! is read as objects of files are. [`Translator`] keeps what a change leaves as it is.

mod annotations;
mod classes;
mod entries;
mod listeners;
mod nginx;
mod outcome;
mod policies;
mod route_parts;
mod routes;
mod settings;
mod text;
mod translator;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

pub use annotations::{KNOWN, Treatment};
pub use outcome::{Outcome, Verdict};
pub use settings::{HostOwner, IngressSettings, NginxRegex};
pub use translator::{Expanded, Translator};

use crate::diagnostic::Diagnostic;
use crate::kind::{Kind, Name, ObjectRef};
use crate::resource::networking::Ingress;
use crate::resource::{Object, ResourceSet};
use classes::Served;
use entries::Entries;

/// Name of the Gateway of all Ingresses, and of its GatewayClass.
pub const GATEWAY: &str = "strait-ingress";

/// Object that Ingresses were translated to.
#[derive(Clone, Debug)]
pub struct Translated {
    /// Kind of the object.
    pub kind: Kind,
    /// Namespace and name.
    pub name: Name,
    /// Object, with the key [`LINE`](text::LINE) where a part has the line of its Ingress.
    value: Value,
    /// Ingress that it comes from.
    pub origin: Arc<Object<Ingress>>,
}

impl Translated {
    /// Returns the object as it can be applied.
    pub fn to_value(&self) -> Value {
        text::without_lines(&self.value)
    }
}

/// Result of a translation.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    /// Objects, sorted by kind and name.
    pub objects: Vec<Translated>,
    /// Findings about Ingresses.
    pub findings: Vec<Diagnostic>,
    /// Outcomes of annotations and fields, by Ingress.
    pub outcomes: BTreeMap<Name, Vec<Outcome>>,
}

/// Translates the Ingresses of a set that are served.
pub fn translate(set: &ResourceSet, settings: &IngressSettings) -> Translation {
    let mut out = Translation::default();
    let mut served = classes::served(set, settings, &mut out);
    let listeners = listeners::collect(set, settings, &served, &mut out);
    listeners.close_unverified(&mut served);
    let entries = Entries::collect(set, settings, &served, &mut out);
    let mut objects = Objects {
        set,
        settings,
        made: BTreeMap::new(),
    };
    listeners.write(&served, &mut objects);
    routes::write(&served, &entries, &listeners, &mut objects, &mut out);
    policies::write(&served, &entries, &mut objects, &mut out);
    out.objects = objects.made.into_values().collect();
    for (one, served) in served.iter().map(|one| (&one.object, one)) {
        let name = one.id.to_name();
        let outcomes = out.outcomes.entry(name).or_default();
        outcomes.extend(served.nginx.outcomes.iter().cloned());
        let found = served.nginx.outcomes.iter();
        out.findings
            .extend(found.filter_map(|outcome| outcome.finding(one)));
    }
    out
}

/// Objects that have been made.
struct Objects<'a> {
    set: &'a ResourceSet,
    settings: &'a IngressSettings,
    made: BTreeMap<(Kind, Name), Translated>,
}

impl Objects<'_> {
    /// Adds an object of an Ingress. Its name gets a number if there is such an object already.
    fn add(
        &mut self,
        kind: Kind,
        name: Name,
        annotations: Value,
        spec: Value,
        served: &Served,
    ) -> Name {
        let mut free = name.clone();
        let mut number = 1;
        while self.made.contains_key(&(kind, free.clone())) || self.is_written(kind, &free) {
            number += 1;
            free.name = format!("{}-{number}", name.name).into();
        }
        let group = match kind {
            Kind::DestinationRule => "networking.istio.io",
            _ => "gateway.networking.k8s.io",
        };
        let mut metadata = json!({"name": &*free.name});
        if kind.is_namespaced() {
            metadata["namespace"] = (&*free.namespace).into();
        }
        if annotations.as_object().is_some_and(|map| !map.is_empty()) {
            metadata["annotations"] = annotations;
        }
        let value = json!({
            "apiVersion": format!("{group}/v1"),
            "kind": kind.as_str(),
            "metadata": metadata,
            "spec": spec,
        });
        let translated = Translated {
            kind,
            name: free.clone(),
            value,
            origin: Arc::clone(&served.object),
        };
        self.made.insert((kind, free.clone()), translated);
        free
    }

    fn is_written(&self, kind: Kind, name: &Name) -> bool {
        let named = self.set.named(kind, name);
        named
            .iter()
            .any(|one| one.provenance().written_as.is_none())
    }
}

/// Returns the reference of an Ingress.
fn reference(name: &Name) -> ObjectRef {
    ObjectRef::new(
        Kind::Ingress,
        Arc::clone(&name.namespace),
        Arc::clone(&name.name),
    )
}

#[cfg(test)]
mod tests;
