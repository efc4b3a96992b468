//! Istio's standard metrics of TCP connections as text.

use std::sync::Arc;

use super::format::TextFormat;
use super::requests::{append_label, append_line, append_party_labels};
use traffic::telemetry::flags::ResponseFlags;
use traffic::telemetry::labels::{Reporter, RequestLabels, UNKNOWN};
use traffic::telemetry::names::{self, Family, label};
use traffic::telemetry::requests::{RequestStats, Security};
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
pub(super) fn text(handles: &[Arc<RequestStats>], format: TextFormat) -> Vec<u8> {
    let used: Vec<(&RequestLabels, TcpTotals)> = handles
        .iter()
        .filter(|handle| handle.tcp().is_used())
        .map(|handle| (handle.labels(), handle.tcp().totals()))
        .collect();
    let mut out = Vec::new();
    if used.is_empty() {
        return out;
    }
    let mut text = Vec::new();
    for (family, samples) in FAMILIES {
        format.append_header(&mut out, &family, "counter");
        for (labels, totals) in &used {
            for (flags, value) in samples(totals) {
                text.clear();
                append_party_labels(&mut text, labels);
                append_label(&mut text, label::REQUEST_PROTOCOL, "tcp");
                append_label(&mut text, label::RESPONSE_FLAGS, &flags.to_string());
                let security = security(labels).as_str();
                append_label(&mut text, label::CONNECTION_SECURITY_POLICY, security);
                append_line(
                    &mut out,
                    &[family.name.as_bytes(), b"{", &text, b"} "],
                    value,
                );
            }
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
