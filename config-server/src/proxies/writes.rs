//! Recent writes, and the newest one that each proxy should have.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use config_loader::Kind;
use config_loader::proxy_state::ProxySpec;
use config_loader::source::content;
use serde_json::{Value, json};

use super::view::Report;
use crate::resources::{self, Resource};
use crate::selector::Selector;
use crate::store::{Event, Revision};

/// Maximum number of recorded writes.
const WRITES_MAX: usize = 4_096;

/// Kinds to which the label selector of a proxy does not apply.
const UNSELECTED: [Kind; 2] = [Kind::EndpointSlice, Kind::Service];

/// Recent writes, in order.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Revision before the first one that is known here. Proxies may come from another replica, with revisions of it.
    pub(super) start: Revision,
    kept: VecDeque<Write>,
}

#[derive(Debug)]
struct Write {
    revision: Revision,
    resource: &'static Resource,
    namespace: Option<Box<str>>,
    /// Labels after the write, and before it.
    labels: [Value; 2],
    /// Time of the acknowledgment; `None` for writes of an earlier process.
    at: Option<Instant>,
}

impl Writes {
    /// Records a write that changes what proxies read.
    pub(super) fn push(&mut self, event: &Arc<Event>, at: Option<Instant>) {
        let Some(resource) = resources::of_key(&event.key) else {
            return;
        };
        if !resource.row.is_some_and(|row| has_effect(event, row.kind)) {
            return;
        }
        if self.kept.len() >= WRITES_MAX {
            self.kept.pop_front();
        }
        let namespace = match resource.api.is_namespaced {
            true => event.key.rsplit('/').nth(1).map(Box::from),
            false => None,
        };
        self.kept.push_back(Write {
            revision: event.revision,
            resource,
            namespace,
            labels: [labels(&event.value), labels(&event.previous)],
            at,
        });
    }

    /// Returns the propagation times of the writes that this proxy reads, with revisions in `(before, after]`.
    pub(super) fn times(
        &self,
        report: &Report,
        before: Revision,
        after: Revision,
        now: Instant,
    ) -> Vec<Duration> {
        let start = self.kept.partition_point(|one| one.revision <= before);
        let end = self.kept.partition_point(|one| one.revision <= after);
        if start >= end || before < self.start {
            return Vec::new();
        }
        let reached = self.kept.range(start..end);
        let reached = reached.filter(|write| write.reaches(report));
        reached
            .filter_map(|write| Some(now.saturating_duration_since(write.at?)))
            .collect()
    }

    /// Returns the newest recorded write that the proxy should have; `None` if there is none.
    pub(super) fn newest_for(&self, report: &Report) -> Option<Revision> {
        let mut newest = self.kept.iter().rev();
        let newest = newest.find(|write| write.reaches(report));
        newest.map(|write| write.revision)
    }
}

impl Write {
    fn reaches(&self, report: &Report) -> bool {
        let namespace = self.namespace.as_deref();
        let mut labels = self.labels.iter();
        follows(report, self.resource, namespace, |selector| {
            labels.any(|labels| selector.selects(labels))
        })
    }
}

/// Whether a write changes what proxies read of an object. Condition updates do not.
pub fn has_effect(event: &Event, kind: Kind) -> bool {
    let (Some(value), Some(previous)) = (&event.value, &event.previous) else {
        return true;
    };
    let content = |value: &Bytes| {
        let object: Value = serde_json::from_slice(value).unwrap_or_default();
        content::of(kind, &object)
    };
    content(value) != content(previous)
}

/// Whether a proxy reads objects of a resource in a namespace. `selects` evaluates its label selector.
pub fn follows(
    report: &Report,
    resource: &Resource,
    namespace: Option<&str>,
    selects: impl FnOnce(&Selector) -> bool,
) -> bool {
    let ProxySpec {
        namespaces,
        selector,
        ..
    } = &report.spec;
    let Some(row) = resource.row else {
        return false;
    };
    // The Secrets and ConfigMaps that a proxy may read depend on its role; whether it reads workloads, on its flags.
    if matches!(row.kind, Kind::ConfigMap | Kind::Secret) || row.kind.is_state() {
        return false;
    }
    let is_in = |namespace: &str| namespaces.iter().any(|known| known == namespace);
    if !namespaces.is_empty() && namespace.is_some_and(|namespace| !is_in(namespace)) {
        return false;
    }
    if selector.is_empty() || UNSELECTED.contains(&row.kind) {
        return true;
    }
    Selector::read(selector, "", resource).is_ok_and(|selector| selects(&selector))
}

/// Returns a stub of the object with only its labels.
fn labels(value: &Option<Bytes>) -> Value {
    #[derive(serde::Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    struct Metadata {
        labels: Option<Value>,
    }
    let read = value.as_ref().map(|value| serde_json::from_slice(value));
    match read {
        Some(Ok(Object {
            metadata: Metadata {
                labels: Some(labels),
            },
        })) => json!({"metadata": {"labels": labels}}),
        _ => Value::Null,
    }
}
