//! Annotations of an object that Strait reads.

use crate::raw::{Field, Map};
use crate::resource::flomesh::GlobalTrafficPolicy;
use crate::resource::istio::authorization_policy::DRY_RUN;
use crate::resource::networking::Ingress;
use crate::span::Span;

/// Annotations of one object that Strait reads, as written.
#[derive(Debug, Default)]
pub struct Annotations(Vec<(String, Span, Field<String>)>);

impl Annotations {
    /// No annotations.
    pub const NONE: Self = Self(Vec::new());

    /// Selects the `strait.io` annotations, and foreign ones that have an effect.
    pub fn of(all: &Field<Map<String>>) -> Self {
        let entries = all.get().into_iter().flat_map(Map::iter);
        let foreign = [GlobalTrafficPolicy::FAILOVER_ORDER, DRY_RUN];
        let counts =
            |key: &str| key.starts_with(PREFIX) || foreign.contains(&key) || is_of_ingress(key);
        let own = entries.filter(|(key, ..)| counts(key));
        Self(
            own.map(|(key, at, value)| (key.to_owned(), at.span(), value.clone()))
                .collect(),
        )
    }

    /// Returns the annotations that are not only for Ingresses, with the span of each key.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Span, &Field<String>)> {
        self.entries().filter(|(key, ..)| !is_of_ingress(key))
    }

    /// Returns the annotations that controllers of Ingresses read, with the span of each key.
    pub fn of_ingress(&self) -> impl Iterator<Item = (&str, Span, &Field<String>)> {
        self.entries().filter(|(key, ..)| is_of_ingress(key))
    }

    fn entries(&self) -> impl Iterator<Item = (&str, Span, &Field<String>)> {
        let entries = self.0.iter();
        entries.map(|(key, span, value)| (&**key, *span, value))
    }

    /// Returns the value of an annotation, if it is a string.
    pub fn get(&self, key: &str) -> Option<&Field<String>> {
        let mut entries = self.0.iter();
        entries
            .find(|(name, ..)| name == key)
            .map(|(.., value)| value)
            .filter(|value| value.get().is_some())
    }
}

/// Whether controllers of Ingresses read an annotation.
fn is_of_ingress(key: &str) -> bool {
    key.starts_with(Ingress::NGINX) || key == Ingress::CLASS
}

/// Prefix of all Strait annotations.
const PREFIX: &str = "strait.io/";
