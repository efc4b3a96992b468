//! Labels of a series of Istio's metrics, with the changes of Telemetry resources.

use traffic::telemetry::labels::RequestLabels;
use traffic::telemetry::names::label;
use traffic::telemetry::rules::FamilyRule;
use traffic::telemetry::tags::TagValues;

/// Text of the labels of a series, without braces.
pub(super) struct SeriesLabels<'r> {
    rule: Option<&'r FamilyRule>,
    values: Option<&'r TagValues>,
    text: Vec<u8>,
    /// Labels of the rule that the series has anyway.
    replaced: Vec<&'r str>,
}

impl<'r> SeriesLabels<'r> {
    /// Creates an empty text for series with these values of requests.
    pub(super) fn new(rule: Option<&'r FamilyRule>, values: Option<&'r TagValues>) -> Self {
        Self {
            rule,
            values,
            text: Vec::new(),
            replaced: Vec::new(),
        }
    }

    /// Begins another series.
    pub(super) fn clear(&mut self) -> &mut Self {
        self.text.clear();
        self.replaced.clear();
        self
    }

    /// The text.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Adds one label.
    pub(super) fn add(&mut self, name: &str, value: &str) {
        let Some(rule) = self.rule else {
            return append_label(&mut self.text, name, value);
        };
        match rule.set.get_key_value(name) {
            Some((name, value)) => {
                self.replaced.push(name);
                append_label(&mut self.text, name, value.text(self.values));
            }
            None if rule.removed.contains(name) => {}
            None => append_label(&mut self.text, name, value),
        }
    }

    /// Adds the labels of reporter, source and destination.
    pub(super) fn add_parties(&mut self, labels: &RequestLabels) {
        self.add(label::REPORTER, labels.reporter.as_str());
        let sources = label::SOURCE.into_iter().zip(labels.source.values());
        let destinations = label::DESTINATION
            .into_iter()
            .zip(labels.destination.values());
        for (name, value) in sources.chain(destinations) {
            self.add(name, value);
        }
        let service = &labels.service;
        self.add(label::DESTINATION_SERVICE, &service.host);
        self.add(label::DESTINATION_SERVICE_NAME, &service.name);
        self.add(label::DESTINATION_SERVICE_NAMESPACE, &service.namespace);
    }

    /// Adds the labels that only the rule has.
    pub(super) fn finish(&mut self) {
        for (name, value) in self.rule.iter().flat_map(|rule| &rule.set) {
            if !self.replaced.contains(&&**name) {
                append_label(&mut self.text, name, value.text(self.values));
            }
        }
    }
}

/// Appends one label, after a comma if it is not the first.
fn append_label(out: &mut Vec<u8>, name: &str, value: &str) {
    if !out.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    for byte in value.bytes() {
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
