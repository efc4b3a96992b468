//! Parts of tracing that a worker lends to its requests.

use std::sync::Arc;

use crate::runtime::clock;
use crate::runtime::latest::Slot;
use crate::telemetry::SpanQueue;
use traffic::registry::Buckets;

/// Parts of tracing that requests use, beside the settings in the snapshot.
#[derive(Clone, Debug, Default)]
pub struct TraceParts {
    /// Buffers for spans.
    pub queue: SpanQueue,
    /// Budget for traces that external clients ask for; `None` for no limit.
    pub external: Option<Arc<Buckets>>,
    /// Budget for requests that are exported although they are not sampled; `None` for no limit.
    pub keep: Option<Arc<Buckets>>,
    /// Attributes of every server span.
    pub own: Slot<OwnAttributes>,
}

/// Encoded attributes of every server span.
#[derive(Clone, Debug, Default)]
pub struct OwnAttributes {
    /// The node and its zone.
    pub node: Arc<[u8]>,
    /// Attributes that only Istio's proxies have.
    pub istio: Arc<[u8]>,
}

/// Whether a budget has a token, which is taken.
pub(crate) fn admits(budget: Option<&Arc<Buckets>>) -> bool {
    budget.is_none_or(|budget| budget.take(None, 1, clock::now()).0.is_ok())
}
