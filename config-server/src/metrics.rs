//! Metrics of the server, and their text for `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::BodyExt;

use crate::api::respond::Body;
use crate::proxies::Proxies;
use crate::store::Revision;

/// Counters and gauges of the server.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Number of requests by verb and status code, both of which come from small fixed sets.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    watches: Arc<AtomicI64>,
    writes: AtomicU64,
    reports: AtomicU64,
    unauthorized: AtomicU64,
    limited: AtomicU64,
    /// Certificates of workloads that were issued, and calls that were refused.
    issued: AtomicU64,
    refused: AtomicU64,
}

impl Metrics {
    /// Counts a request.
    pub fn request(&self, verb: &'static str, code: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((verb, code)).or_default() += 1;
    }

    /// Counts a write that was stored.
    pub fn write(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a report of a proxy.
    pub fn report(&self) {
        self.reports.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request without valid credentials; `is_limited` if its address was rate limited.
    pub fn rejected_login(&self, is_limited: bool) {
        let counter = if is_limited {
            &self.limited
        } else {
            &self.unauthorized
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a certificate of a workload, or a call that got none.
    pub fn certificate(&self, is_issued: bool) {
        let counter = if is_issued {
            &self.issued
        } else {
            &self.refused
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a watch as open until its body is dropped.
    pub fn watch(&self, body: Body) -> Body {
        let open = Open::new(&self.watches);
        body.map_frame(move |frame| {
            let _ = &open;
            frame
        })
        .boxed_unsync()
    }

    /// Returns the metrics in the Prometheus text format. `revision` is the latest revision of the store.
    pub fn text(&self, proxies: &Proxies, revision: Revision) -> String {
        let mut text = String::new();
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let name = head(
            &mut text,
            "strait_control_requests_total",
            "counter",
            "Requests, by verb and status code.",
        );
        for ((verb, code), count) in &*requests {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}{{verb=\"{verb}\",code=\"{code}\"}} {count}");
        }
        drop(requests);
        let name = head(
            &mut text,
            "strait_control_rejected_logins_total",
            "counter",
            "Requests without valid credentials, by answer: 401, or 429 for an address that failed too often.",
        );
        for (code, counter) in [(401, &self.unauthorized), (429, &self.limited)] {
            let count = counter.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}{{code=\"{code}\"}} {count}");
        }
        let name = head(
            &mut text,
            "strait_control_certificates_total",
            "counter",
            "Calls for certificates of workloads, by result: issued or refused.",
        );
        for (result, counter) in [("issued", &self.issued), ("refused", &self.refused)] {
            let count = counter.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}{{result=\"{result}\"}} {count}");
        }
        self.write_gauges(&mut text, proxies, revision);
        let name = head(
            &mut text,
            "strait_config_propagation_seconds",
            "histogram",
            "Seconds from an acknowledged write to the report of a proxy that it is in effect.",
        );
        proxies.times().append_to(&mut text, name);
        text
    }

    fn write_gauges(&self, text: &mut String, proxies: &Proxies, revision: Revision) {
        let known = proxies.list(None);
        let current = known.iter().filter(|one| one.is_current()).count();
        let rejected = known.iter().map(|one| one.report.status.rejected_count);
        let watches = self.watches.load(Ordering::Relaxed).max(0);
        let counters = [
            (
                "strait_control_writes_total",
                self.writes.load(Ordering::Relaxed),
                "Writes that were stored.",
            ),
            (
                "strait_control_reports_total",
                self.reports.load(Ordering::Relaxed),
                "Reports of proxies.",
            ),
        ];
        for (name, value, help) in counters {
            head(text, name, "counter", help);
            let _ = writeln!(text, "{name} {value}");
        }
        let gauges = [
            (
                "strait_control_watches",
                watches.cast_unsigned(),
                "Watches that are open.",
            ),
            (
                "strait_control_revision",
                revision,
                "Newest revision of the store.",
            ),
            (
                "strait_control_proxies",
                known.len() as u64,
                "Proxies that report.",
            ),
            (
                "strait_control_proxies_up_to_date",
                current as u64,
                "Proxies that have everything in effect that they should have.",
            ),
            (
                "strait_control_rejected_resources",
                rejected.sum::<usize>() as u64,
                "Resources that proxies reject, summed over proxies.",
            ),
        ];
        for (name, value, help) in gauges {
            head(text, name, "gauge", help);
            let _ = writeln!(text, "{name} {value}");
        }
    }
}

/// Returns the counters of the webhook that adds sidecars, by result.
pub(crate) fn injections(results: impl Iterator<Item = (&'static str, u64)>) -> String {
    let mut text = String::new();
    let help = "Pods that the webhook has reviewed, by result.";
    let name = head(&mut text, "strait_injections_total", "counter", help);
    for (result, count) in results {
        let _ = writeln!(text, "{name}{{result=\"{result}\"}} {count}");
    }
    text
}

fn head<'a>(text: &mut String, name: &'a str, kind: &str, help: &str) -> &'a str {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    name
}

/// Open watch, counted until it is dropped.
struct Open(Arc<AtomicI64>);

impl Open {
    fn new(count: &Arc<AtomicI64>) -> Open {
        count.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::respond;

    #[test]
    fn watches_count_until_they_end() {
        let metrics = Metrics::default();
        let body = metrics.watch(respond::full("x"));
        metrics.request("watch", 200);
        let text = metrics.text(&Proxies::default(), 7);
        for line in [
            "strait_control_watches 1\n",
            "strait_control_requests_total{verb=\"watch\",code=\"200\"} 1\n",
            "strait_control_revision 7\n",
            "strait_config_propagation_seconds_count 0\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        drop(body);
        let text = metrics.text(&Proxies::default(), 7);
        assert!(text.contains("strait_control_watches 0\n"), "{text}");
    }
}
