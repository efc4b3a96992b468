//! Waits on the bare socket: before the first request, between requests, and for the peer to close.
//!
//! A connection that waits here has no codec and no buffers; it costs its socket and a small task.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::connection_table::ConnectionHandle;
use super::socket::Socket;
use crate::runtime::clock::Tick;
use crate::telemetry::CloseReason;

/// Waits for bytes to serve; `false` if the peer closes or the connection is idle for longer than `patience`, which depends on
/// whether it drains.
pub(super) fn readable<'a>(
    socket: &'a mut Socket,
    member: &'a ConnectionHandle,
    patience: impl Fn(bool) -> Duration + 'a,
) -> impl Future<Output = bool> + 'a {
    let since = member.now();
    poll_readable(socket, member, move |draining| match draining {
        Some(drain) => (since.max(drain)).after(member.drain_idle(patience(true))),
        None => since.after(patience(false)),
    })
}

/// Waits for further bytes; `false` if the peer closes, or none arrive by `due`.
pub(super) fn readable_until<'a>(
    socket: &'a mut Socket,
    member: &'a ConnectionHandle,
    due: Tick,
) -> impl Future<Output = bool> + 'a {
    poll_readable(socket, member, move |_| due)
}

/// Waits for bytes; `false` if the peer closes, or none arrive by the deadline, which may depend on when a drain began.
///
/// No `async` function, whose future would hold its arguments twice.
fn poll_readable<'a>(
    socket: &'a mut Socket,
    member: &'a ConnectionHandle,
    due: impl Fn(Option<Tick>) -> Tick + 'a,
) -> impl Future<Output = bool> + 'a {
    poll_fn(move |cx| {
        if let Poll::Ready(read) = socket.poll_ahead(cx) {
            return Poll::Ready(matches!(read, Ok(length) if length > 0));
        }
        let due = due(member.draining());
        if member.now() >= due {
            socket.ends(match member.draining() {
                Some(_) => CloseReason::Drain,
                None => CloseReason::IdleTimeout,
            });
            return Poll::Ready(false);
        }
        member.wake_at(cx, due);
        Poll::Pending
    })
}

/// Time for a peer to go on sending after its response, and maximum pause meanwhile.
pub(super) const LINGER: Duration = Duration::from_secs(30);
pub(super) const LINGER_PAUSE: Duration = Duration::from_secs(5);

/// The same during a drain or after a protocol violation; also the time to send the last message.
pub(super) const LINGER_SHORT: Duration = Duration::from_secs(1);

/// Maximum bytes discarded from a peer that violated the protocol.
const LINGER_BYTES_MAX: usize = 256 * 1024;

/// Reason that a connection ends while its peer may be sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LingerCause {
    /// The peer has its response; the rest of its request is not read.
    Answered,
    /// The peer violated the protocol.
    Refused,
}

/// Sends a last message, closes our direction and waits for the peer to close its own.
///
/// Closing a socket with unread bytes resets the connection, and the reset may overtake the response: the peer would
/// never see it (RFC 9112, section 9.6).
pub(super) async fn linger(
    mut socket: Socket,
    member: &ConnectionHandle,
    done: LingerCause,
    message: &[u8],
) {
    let began = member.now();
    {
        let due = began.after(LINGER_SHORT);
        // a peer that reads nothing does not read the end of a TLS session either
        let mut finish = pin!(socket.finish(message));
        let finished = poll_fn(|cx| match finish.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(result.is_ok()),
            Poll::Pending if member.now() >= due => Poll::Ready(false),
            Poll::Pending => {
                member.wake_at(cx, due);
                Poll::Pending
            }
        });
        if !finished.await {
            return;
        }
    }
    let (mut heard, mut discarded) = (member.now(), 0);
    poll_fn(|cx| {
        while let Poll::Ready(read) = socket.poll_discard(cx) {
            discarded += read.as_ref().copied().unwrap_or(0);
            let too_much = done == LingerCause::Refused && discarded > LINGER_BYTES_MAX;
            if !matches!(read, Ok(length) if length > 0) || too_much {
                return Poll::Ready(());
            }
            heard = member.now();
        }
        let due = match member.draining() {
            Some(drain) => began.max(drain).after(LINGER_SHORT),
            None if done == LingerCause::Refused => began.after(LINGER_SHORT),
            None => began.after(LINGER).min(heard.after(LINGER_PAUSE)),
        };
        if member.now() >= due {
            return Poll::Ready(());
        }
        member.wake_at(cx, due);
        Poll::Pending
    })
    .await;
}
