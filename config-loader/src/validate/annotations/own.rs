//! The annotations of an object that Strait reads.

use crate::raw::{Field, Map};
use crate::resource::flomesh::GlobalTrafficPolicy;
use crate::span::Span;

/// The annotations of one object that mean something here, as they were written.
#[derive(Debug, Default)]
pub struct Annotations(Vec<(String, Span, Field<String>)>);

impl Annotations {
    /// None of them.
    pub const NONE: Self = Self(Vec::new());

    /// Takes the annotations of Strait, and foreign ones with an effect.
    pub fn of(all: &Field<Map<String>>) -> Self {
        let entries = all.get().into_iter().flat_map(Map::iter);
        let counts =
            |key: &str| key.starts_with(PREFIX) || key == GlobalTrafficPolicy::FAILOVER_ORDER;
        let own = entries.filter(|(key, ..)| counts(key));
        Self(
            own.map(|(key, at, value)| (key.to_owned(), at.span(), value.clone()))
                .collect(),
        )
    }

    /// Every one of them, with the span of its key.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Span, &Field<String>)> {
        let entries = self.0.iter();
        entries.map(|(key, span, value)| (&**key, *span, value))
    }

    /// The one of this key, if its value is a text.
    pub fn get(&self, key: &str) -> Option<&Field<String>> {
        let mut entries = self.0.iter();
        entries
            .find(|(name, ..)| name == key)
            .map(|(.., value)| value)
            .filter(|value| value.get().is_some())
    }
}

/// What all of ours begin with.
const PREFIX: &str = "strait.io/";
