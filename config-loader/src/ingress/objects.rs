//! Objects that Ingresses are translated to.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::classes::Served;
use super::outcome::Outcome;
use super::text;
use crate::diagnostic::Diagnostic;
use crate::kind::{Kind, Name, ObjectRef};
use crate::options::IngressSettings;
use crate::resource::networking::Ingress;
use crate::resource::{Object, ResourceSet};

/// Name of the Gateway of all Ingresses, and of its GatewayClass.
pub const GATEWAY: &str = "strait-ingress";

/// Object that Ingresses were translated to.
#[derive(Clone, Debug)]
pub struct Translated {
    /// Kind of the object.
    pub kind: Kind,
    /// Namespace and name.
    pub name: Name,
    /// Object, with the key [`LINE`](super::text::LINE) where a part has the line of its Ingress.
    pub(super) value: Value,
    /// Ingress that it comes from.
    pub origin: Arc<Object<Ingress>>,
    /// Whether its name has a number, since somebody has written an object with the name.
    pub(super) is_renamed: bool,
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

/// Objects that have been made.
pub(super) struct Objects<'a> {
    pub(super) set: &'a ResourceSet,
    pub(super) settings: &'a IngressSettings,
    pub(super) made: BTreeMap<(Kind, Name), Translated>,
}

impl Objects<'_> {
    /// Adds an object of an Ingress. Its name gets a number if there is such an object already.
    pub(super) fn add(
        &mut self,
        (kind, name): (Kind, Name),
        (annotations, spec): (Value, Value),
        served: &Served,
    ) {
        let mut free = name.clone();
        let (mut number, mut is_renamed) = (1, false);
        loop {
            let is_written = self.is_written(kind, &free);
            is_renamed |= is_written;
            if !is_written && !self.made.contains_key(&(kind, free.clone())) {
                break;
            }
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
            is_renamed,
        };
        self.made.insert((kind, free), translated);
    }

    fn is_written(&self, kind: Kind, name: &Name) -> bool {
        let named = self.set.named(kind, name);
        named
            .iter()
            .any(|one| one.provenance().written_as.is_none())
    }
}

/// Returns the reference of an Ingress.
pub(super) fn reference(name: &Name) -> ObjectRef {
    ObjectRef::new(
        Kind::Ingress,
        Arc::clone(&name.namespace),
        Arc::clone(&name.name),
    )
}
