//! Istio's standard metrics of TCP connections as text.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::format::TextFormat;
use super::labels::SeriesLabels;
use super::requests::append_line;
use traffic::telemetry::flags::ResponseFlags;
use traffic::telemetry::labels::{Reporter, RequestLabels, UNKNOWN};
use traffic::telemetry::names::{self, Family, label};
use traffic::telemetry::requests::{RequestStats, Security};
use traffic::telemetry::rules::MetricRules;
use traffic::telemetry::tcp::TcpTotals;

/// A family, with a function that returns its samples by response flags.
type Of = (Family, fn(&TcpTotals) -> Vec<(ResponseFlags, u64)>);

const FAMILIES: [Of; 4] = [
    (names::TCP_OPENED, |totals| {
        vec![(ResponseFlags::NONE, totals.opened)]
    }),
    (names::TCP_CLOSED, |totals| totals.closed.clone()),
    (names::TCP_SENT, |totals| {
        vec![(ResponseFlags::NONE, totals.sent)]
    }),
    (names::TCP_RECEIVED, |totals| {
        vec![(ResponseFlags::NONE, totals.received)]
    }),
];

/// Text for these label sets, without those that never had a connection.
pub(super) fn text(
    handles: &[Arc<RequestStats>],
    rules: &MetricRules,
    format: TextFormat,
) -> Vec<u8> {
    let used: Vec<(&RequestStats, TcpTotals)> = handles
        .iter()
        .filter(|handle| handle.tcp().is_used())
        .map(|handle| (&**handle, handle.tcp().totals()))
        .collect();
    let mut out = Vec::new();
    if used.is_empty() {
        return out;
    }
    for (family, samples) in FAMILIES {
        let mut merged: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for (handle, totals) in &used {
            let labels = handle.labels();
            let rule = rules.of(labels.reporter, family.name);
            if rule.is_some_and(|rule| rule.is_off) {
                continue;
            }
            for (flags, value) in samples(totals) {
                let mut text = SeriesLabels::new(rule, handle.values().map(|values| &**values));
                text.add_parties(labels);
                text.add(label::REQUEST_PROTOCOL, "tcp");
                text.add(label::RESPONSE_FLAGS, &flags.to_string());
                let security = security(labels).as_str();
                text.add(label::CONNECTION_SECURITY_POLICY, security);
                text.finish();
                *merged.entry(text.text().to_vec()).or_default() += value;
            }
        }
        if !merged.is_empty() {
            format.append_header(&mut out, &family, "counter");
        }
        for (labels, value) in merged {
            let parts: [&[u8]; 4] = [family.name.as_bytes(), b"{", &labels, b"} "];
            append_line(&mut out, &parts, value);
        }
    }
    out
}

/// Security of connections with these labels, as reported by the receiving side: only a client with a certificate has a
/// principal.
fn security(labels: &RequestLabels) -> Security {
    match labels.reporter {
        Reporter::Source => Security::Unknown,
        Reporter::Destination if &*labels.source.principal == UNKNOWN => Security::None,
        Reporter::Destination => Security::MutualTls,
    }
}
