//! Labels stored in one text. A cluster has tens of thousands of pods, and a map of labels per pod would take ten times
//! the memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::resource::shared_text;

/// Labels of an object, sorted by key, in one text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelText(Arc<str>);

impl LabelText {
    /// Creates the text from the labels for whose key `is_kept` returns true.
    pub(crate) fn of(
        labels: &BTreeMap<String, String>,
        is_kept: impl Fn(&str) -> bool,
    ) -> LabelText {
        let kept = labels.iter().filter(|(key, _)| is_kept(key));
        // neither a key nor a value has either character
        let text: String = kept
            .flat_map(|(key, value)| [key, "=", value, "\n"])
            .collect();
        LabelText(shared_text(&text))
    }

    /// Iterates over the labels, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.lines().filter_map(|line| line.split_once('='))
    }

    /// Returns the value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut found = self.iter().filter(|(known, _)| *known == key);
        found.next().map(|(_, value)| value)
    }

    /// Whether all labels of `wanted` are present with the same values.
    pub fn has_all(&self, wanted: &BTreeMap<String, String>) -> bool {
        let mut wanted = wanted.iter();
        wanted.all(|(key, value)| self.get(key) == Some(value))
    }

    /// Returns the labels as a map.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let labels = self.iter();
        labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_by_key_and_compared_as_a_whole() {
        let map: BTreeMap<String, String> = [("app", "web"), ("a.b/c", ""), ("version", "v1")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        let labels = LabelText::of(&map, |_| true);
        assert_eq!(labels.to_map(), map);
        assert_eq!(labels.get("a.b/c"), Some(""));
        assert_eq!(labels.get("ver"), None);
        assert!(labels.has_all(&map) && labels.has_all(&BTreeMap::new()));
        let app = LabelText::of(&map, |key| key == "app");
        assert_eq!(app.iter().collect::<Vec<_>>(), [("app", "web")]);
        assert!(!app.has_all(&map));
    }
}
