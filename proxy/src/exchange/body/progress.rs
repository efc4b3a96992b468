//! Progress of reading a request's body.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::time::Instant;

use crate::exchange::message::grpc_messages::Messages;

/// Progress of reading a downstream request.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: Cell<u64>,
    /// Counter of gRPC messages, if enabled.
    messages: Cell<Option<Messages>>,
    complete: Cell<bool>,
    /// Time when the body's last byte was read; `None` for a request without a body.
    ended: Cell<Option<Instant>>,
    waker: RefCell<Option<Waker>>,
}

impl Progress {
    /// Number of body bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Enables counting of gRPC messages.
    pub fn count_messages(&self) {
        if self.messages.get().is_none() {
            self.messages.set(Some(Messages::default()));
        }
    }

    /// Number of gRPC messages read so far; 0 if not counted.
    pub fn messages(&self) -> u64 {
        self.messages.get().map_or(0, |messages| messages.count())
    }

    pub(in crate::exchange) fn saw(&self, data: &Bytes) {
        self.bytes.set(self.bytes.get() + data.len() as u64);
        if let Some(mut messages) = self.messages.get() {
            messages.saw(data);
            self.messages.set(Some(messages));
        }
    }

    /// Time when the request was read completely, if it was; `head` is the time of its head.
    pub fn ended(&self, head: Instant) -> Option<Instant> {
        self.complete
            .get()
            .then(|| self.ended.get().unwrap_or(head))
    }

    /// Whether the request was read completely.
    pub fn is_complete(&self) -> bool {
        self.complete.get()
    }

    /// Ready once the request was read completely.
    pub fn poll_complete(&self, cx: &Context<'_>) -> Poll<()> {
        if self.complete.get() {
            return Poll::Ready(());
        }
        self.waker.replace(Some(cx.waker().clone()));
        Poll::Pending
    }

    pub(in crate::exchange) fn end_body(&self) {
        if !self.complete.get() {
            self.ended.set(Some(Instant::now()));
            self.finish();
        }
    }

    pub(super) fn finish(&self) {
        self.complete.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
