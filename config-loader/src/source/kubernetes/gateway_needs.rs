//! Kinds without which Gateways of the Gateway API cannot be served safely. If the credentials do not allow one, a proxy
//! goes on as long as no Gateway needs it, and reads no Gateway that does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use tokio::sync::Notify;

use crate::catalog::gateway_api::CLASS;
use crate::kind::Kind;
use crate::source::stream::report::Key;

/// Returns what could happen to a Gateway without a kind; `None` for a kind that no Gateway needs.
pub(super) fn danger_without(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::BackendTLSPolicy => Some("backends of Gateways could get plain text in place of TLS"),
        Kind::GatewayClass => Some("it is not known which Gateways to serve"),
        _ => None,
    }
}

/// Whether a Gateway of a class is served if nothing is known of a kind.
fn is_needed(kind: Kind, class: &str) -> bool {
    // other classes are not served without their GatewayClass
    kind != Kind::GatewayClass || class == CLASS
}

/// Gateways of a server, and what they need and cannot get.
#[derive(Clone, Debug, Default)]
pub(super) struct GatewayNeeds(Arc<Needs>);

#[derive(Debug, Default)]
struct Needs {
    known: Mutex<Known>,
    /// Notified when a kind is listed.
    listed: Notify,
}

#[derive(Debug, Default)]
struct Known {
    /// Classes of the Gateways.
    classes: BTreeSet<String>,
    /// Needed kinds that were listed.
    listed: BTreeSet<Kind>,
    /// Needed kinds that are refused, each with the key of its watch.
    refused: BTreeMap<Kind, Key>,
}

impl GatewayNeeds {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a kind is listed.
    pub(super) fn list(&self, kind: Kind) {
        if danger_without(kind).is_some() {
            let mut known = self.lock();
            known.listed.insert(kind);
            known.refused.remove(&kind);
            self.0.listed.notify_waiters();
        }
    }

    /// Records that a needed kind is refused. Returns whether a Gateway is there that needs it, or its objects were listed
    /// before.
    pub(super) fn refuse(&self, kind: Kind, key: Key) -> bool {
        let mut known = self.lock();
        if known.listed.contains(&kind) {
            return true;
        }
        known.refused.insert(kind, key);
        known.classes.iter().any(|class| is_needed(kind, class))
    }

    /// Records the Gateway of an event. Returns a refused kind that it needs, with the key of its watch.
    pub(super) fn note(&self, event: &Event<DynamicObject>) -> Option<(Kind, Key)> {
        let (Event::Apply(gateway) | Event::InitApply(gateway)) = event else {
            return None;
        };
        let class = gateway.data["spec"]["gatewayClassName"].as_str();
        let class = class.unwrap_or_default();
        let mut known = self.lock();
        known.classes.insert(class.to_owned());
        let mut refused = known.refused.iter();
        let (kind, key) = refused.find(|(kind, _)| is_needed(**kind, class))?;
        Some((*kind, Arc::clone(key)))
    }

    /// Waits until a kind is not refused any more.
    pub(super) async fn listed(&self, kind: Kind) {
        loop {
            let listed = self.0.listed.notified();
            if !self.lock().refused.contains_key(&kind) {
                return;
            }
            listed.await;
        }
    }
}
