//! Age of the last message from each source (time since the source was last heard).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::stream::signs::Signs;

/// Time since the last message, by source. One entry per `--control` server.
#[derive(Clone, Debug, Default)]
pub struct SourceAges(Arc<Mutex<BTreeMap<Arc<str>, Signs>>>);

impl SourceAges {
    /// Tracks the liveness signals `signs` of `source` from now on.
    pub(super) fn follow(&self, source: String, signs: &Signs) {
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sources.insert(source.into(), signs.clone());
    }

    /// Returns the current age per source. For an API server it is the age of its most silent watch.
    pub fn now(&self) -> Vec<(Arc<str>, Duration)> {
        let sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sources = sources.iter();
        sources
            .filter_map(|(source, signs)| Some((Arc::clone(source), signs.age()?)))
            .collect()
    }
}
