//! The last writes, and which of them a proxy should have.

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

/// How many writes are remembered.
const WRITES_MAX: usize = 4_096;

/// Kinds that a proxy's label selector does not limit.
const UNSELECTED: [Kind; 2] = [Kind::EndpointSlice, Kind::Service];

/// The last writes, in order.
#[derive(Debug, Default)]
pub(super) struct Writes {
    kept: VecDeque<Write>,
}

#[derive(Debug)]
struct Write {
    revision: Revision,
    resource: &'static Resource,
    namespace: Option<Box<str>>,
    /// The labels after and before.
    labels: [Value; 2],
    /// When it was acknowledged.
    at: Option<Instant>,
}

impl Writes {
    /// Notes a write that changes what proxies read.
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

    /// How long the writes took that are newer than the first revision and not newer than the second, for this proxy.
    pub(super) fn times(
        &self,
        report: &Report,
        (before, after): (Revision, Revision),
        now: Instant,
    ) -> Vec<Duration> {
        let start = self.kept.partition_point(|one| one.revision <= before);
        let end = self.kept.partition_point(|one| one.revision <= after);
        if start >= end {
            return Vec::new();
        }
        let reached = self.kept.range(start..end);
        let reached = reached.filter(|write| write.reaches(report));
        reached
            .filter_map(|write| Some(now.saturating_duration_since(write.at?)))
            .collect()
    }

    /// The newest write that this proxy should have, if it is still remembered.
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

/// Whether a write changes what proxies read of an object. Conditions that a server writes do not.
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

/// Whether a proxy reads objects of a resource in a namespace. `selects` says whether its label selector selects them.
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
    // Which Secrets a proxy may read depends on its role.
    if row.kind == Kind::Secret {
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

/// An object with nothing but its labels.
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
