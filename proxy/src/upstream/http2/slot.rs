//! Received part of a stream's response.

use std::task::Waker;

use bytes::{Bytes, BytesMut};
use hyper::{HeaderMap, StatusCode};

use super::super::failure::Fault;
use wire::http2::head::Response;

/// Received part of a stream's response. Bounded by the stream's window, the limit of header lists, and the maximum
/// number of queued interim responses.
#[derive(Debug, Default)]
pub(super) struct ReceivedResponse {
    pub(super) head: Option<Response>,
    pub(super) interims: Vec<(StatusCode, HeaderMap)>,
    data: Bytes,
    /// Bytes after `data`, not taken yet.
    more: BytesMut,
    pub(super) trailers: Option<HeaderMap>,
    /// Whether the response is complete.
    pub(super) ended: bool,
    /// Reason that the response stays incomplete.
    pub(super) fault: Option<Fault>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Number of holds: of the reader, and of a task that writes.
    pub(super) holders: u8,
    /// Whether queued bytes of the request are still being sent although no hold is left.
    pub(super) detached: bool,
}

impl ReceivedResponse {
    /// Adds bytes of the body.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // joins small pieces: each allocation would cost more than the bytes
        if self.data.is_empty() && self.more.is_empty() {
            self.data = Bytes::copy_from_slice(bytes);
        } else {
            self.more.extend_from_slice(bytes);
        }
    }

    /// Takes bytes of the body, if there are any.
    pub(super) fn take_data(&mut self) -> Option<Bytes> {
        if self.data.is_empty() {
            return None;
        }
        let next = if self.more.is_empty() {
            Bytes::new()
        } else {
            std::mem::take(&mut self.more).freeze()
        };
        Some(std::mem::replace(&mut self.data, next))
    }

    /// Whether all of the response was taken.
    pub(super) fn is_done(&self) -> bool {
        self.ended && self.data.is_empty() && self.trailers.is_none()
    }

    /// Notes that a part of the response was received; `end` if it was the last.
    pub(super) fn got(&mut self, end: bool) {
        self.ended |= end;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Ends the stream; a fault only if its response is not complete.
    pub(super) fn fail(&mut self, fault: Fault) {
        if !self.ended && self.fault.is_none() {
            self.fault = Some(fault);
        }
        self.got(false);
        self.wake_writer();
    }

    /// Wakes the task that sends the request: it can go on, or never will.
    pub(super) fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    pub(super) fn wait_to_read(&mut self, waker: &Waker) {
        wait(&mut self.reader, waker);
    }

    pub(super) fn wait_to_write(&mut self, waker: &Waker) {
        wait(&mut self.writer, waker);
    }
}

fn wait(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(known) => known.clone_from(waker),
        None => *place = Some(waker.clone()),
    }
}
