//! How far the body of a request has come in.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::time::Instant;

use crate::exchange::message::grpc_messages::Messages;

/// How far the downstream peer's request has come in.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: Cell<u64>,
    /// Counts messages, for gRPC.
    messages: Cell<Option<Messages>>,
    complete: Cell<bool>,
    /// When the body's last byte was read; none for a request without a body.
    ended: Cell<Option<Instant>>,
    waker: RefCell<Option<Waker>>,
}

impl Progress {
    /// Body bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Counts gRPC messages from now on.
    pub fn count_messages(&self) {
        if self.messages.get().is_none() {
            self.messages.set(Some(Messages::default()));
        }
    }

    /// gRPC messages read so far, if they are counted.
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

    /// When the request was read to its end, if it has been; `head` is when its head was.
    pub fn ended(&self, head: Instant) -> Option<Instant> {
        self.complete
            .get()
            .then(|| self.ended.get().unwrap_or(head))
    }

    /// Ready once the request has been read to its end.
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
