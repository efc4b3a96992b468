//! Labels or annotations of an object.

use std::collections::BTreeMap;
use std::ops::Deref;

/// Texts by key. An empty map, common for pods, has the size of a pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::box_collection,
    reason = "an empty map of its own takes 24 bytes"
)]
pub struct TextMap(Option<Box<BTreeMap<String, String>>>);

/// Map that an empty [`TextMap`] dereferences to.
static EMPTY: BTreeMap<String, String> = BTreeMap::new();

impl From<BTreeMap<String, String>> for TextMap {
    fn from(texts: BTreeMap<String, String>) -> TextMap {
        TextMap((!texts.is_empty()).then(|| Box::new(texts)))
    }
}

impl Deref for TextMap {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &BTreeMap<String, String> {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}
