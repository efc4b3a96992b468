//! Proxy with one of the two configurations.

use std::sync::Arc;

use crate::compile::Survey;
use crate::exchange::settings::ExchangeSettings;
use crate::explain::{Explanation, Question, explain};
use crate::snapshot::Snapshot;

/// Proxy with one of the two configurations.
#[derive(Debug)]
pub struct Side<'a> {
    /// Configuration. The later one is compiled after the earlier one with the same registry, so that they share what is the same.
    pub snapshot: Arc<Snapshot>,
    /// Settings of the proxy.
    pub settings: &'a ExchangeSettings,
    /// Resources for reasons, which are not compared; none are needed.
    pub survey: Survey<'a>,
}

impl Side<'_> {
    pub(super) fn explain(&self, question: &Question) -> Explanation {
        explain(question, &self.snapshot, self.settings, &self.survey)
    }
}
