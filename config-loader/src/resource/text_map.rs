//! Labels or annotations of an object.

use std::collections::BTreeMap;
use std::ops::Deref;

/// Texts by key. Empty, as those of tens of thousands of pods are, it takes the memory of a pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::box_collection,
    reason = "an empty map of its own takes 24 bytes"
)]
pub struct TextMap(Option<Box<BTreeMap<String, String>>>);

/// What an empty map is read as.
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
