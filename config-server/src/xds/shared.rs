//! Parts of the server that all xDS streams use.

use std::sync::Arc;

use super::encoded::Encoded;
use crate::api::Api;
use crate::metrics::Metrics;
use crate::proxies::Proxies;

/// Parts of the server that all streams use.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) api: Api,
    pub(super) proxies: Arc<Proxies>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) encoded: Arc<Encoded>,
}
