//! Labels of Istio's metrics with values of requests: expressions, and the metrics of their values.

use std::sync::Arc;
use std::time::Instant;

use traffic::filter::{Expression, Needs, TemplateContext};
use traffic::telemetry::{MetricRules, Reporter, RequestStats, TagNames, TagTable};

/// Changes of Istio's metrics, with the expressions of each side whose values are labels.
#[derive(Clone, Debug, Default)]
pub struct MetricChanges {
    /// The changes.
    pub rules: Arc<MetricRules>,
    /// Expressions for traffic that the source reports.
    pub source: Option<Arc<RequestTags>>,
    /// Expressions for traffic that the destination reports.
    pub destination: Option<Arc<RequestTags>>,
}

impl MetricChanges {
    /// Whether requests are asked for values.
    pub fn has_tags(&self) -> bool {
        self.source.is_some() || self.destination.is_some()
    }

    /// The expressions of one side, if there are any.
    pub fn tags(&self, reporter: Reporter) -> Option<&Arc<RequestTags>> {
        match reporter {
            Reporter::Destination => self.destination.as_ref(),
            Reporter::Source => self.source.as_ref(),
        }
    }
}

/// Expressions whose values are labels, each once.
#[derive(Debug)]
pub struct RequestTags {
    names: Arc<TagNames>,
    expressions: Box<[Arc<Expression>]>,
    needs: Needs,
}

impl RequestTags {
    /// Creates the labels of these expressions; `None` if there are none.
    pub fn new(expressions: Vec<Arc<Expression>>) -> Option<Arc<Self>> {
        let names = expressions.iter().map(|one| one.written().into());
        let names = Arc::new(TagNames::new(names.collect()));
        let mut needs = Needs::default();
        for expression in &expressions {
            expression.add_needs(&mut needs);
        }
        let is_any = !expressions.is_empty();
        is_any.then(|| {
            Arc::new(Self {
                names,
                expressions: expressions.into(),
                needs,
            })
        })
    }

    /// Headers that the expressions read.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Finds the metrics with the labels of `base` and the values of a request or connection.
    pub fn find<'t>(
        &self,
        table: &'t mut TagTable,
        base: &Arc<RequestStats>,
        context: &TemplateContext<'_>,
        now: Instant,
    ) -> &'t Arc<RequestStats> {
        table.find(base, &self.names, now, |index, out| {
            self.expressions[index].print(out, context)
        })
    }
}
