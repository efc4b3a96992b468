//! What the HTTP/2 connections of a worker share.

use crate::http2::worker_buffers::WorkerBuffers;

/// What the connections of a worker share.
#[derive(Debug)]
pub(in crate::codec) struct Shared {
    pub(super) memory: WorkerBuffers,
}

impl Shared {
    pub(in crate::codec) fn new() -> Self {
        Self {
            memory: WorkerBuffers::default(),
        }
    }
}
