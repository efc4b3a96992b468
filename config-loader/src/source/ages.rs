//! Age of the last word of each source.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::stream::signs::Signs;

/// Ages of the last words of sources. There are as many sources as `--control` names.
#[derive(Clone, Debug, Default)]
pub struct SourceAges(Arc<Mutex<BTreeMap<Arc<str>, Signs>>>);

impl SourceAges {
    /// Takes the signs of life of a source from `signs` from now on.
    pub(super) fn follow(&self, source: String, signs: &Signs) {
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sources.insert(source.into(), signs.clone());
    }

    /// The ages of now: of an API server that of the watch that is silent for longest.
    pub fn now(&self) -> Vec<(Arc<str>, Duration)> {
        let sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sources = sources.iter();
        sources
            .filter_map(|(source, signs)| Some((Arc::clone(source), signs.age()?)))
            .collect()
    }
}
