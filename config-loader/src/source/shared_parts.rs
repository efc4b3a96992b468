//! Parts that the tasks of all servers share.

use tokio::sync::mpsc;

use super::ages::SourceAges;
use super::stream::report::{Message, States};

/// Parts that the tasks of all servers share.
#[derive(Clone)]
pub(super) struct SharedParts {
    /// Queue to the collector.
    pub(super) reports: mpsc::Sender<Message>,
    /// States of the proxy, which config servers receive.
    pub(super) states: Option<States>,
    /// Time since each server was last heard.
    pub(super) ages: SourceAges,
}
