//! Waiting on the bare socket: before the first request, between requests, and for the peer to close.
//!
//! A connection that waits here has no codec and no buffers; it costs its socket and a small task.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::connection_table::ConnectionHandle;
use super::socket::Socket;
use crate::runtime::clock::Tick;

/// How long an idle connection may stay. By reference, since every connection that waits has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'a> {
    /// As long as all is well.
    pub idle: &'a Duration,
    /// Once a drain has begun.
    pub drain_idle: &'a Duration,
}

/// Waits until there are bytes to serve; `false` when the peer closed or the connection was idle for too long.
pub(super) fn readable<'a>(
    socket: &'a mut Socket,
    member: &'a ConnectionHandle,
    patience: Patience<'a>,
) -> impl Future<Output = bool> + 'a {
    let since = member.now();
    poll_readable(socket, member, move |draining| match draining {
        Some(drain) => (since.max(drain)).after(member.drain_idle(*patience.drain_idle)),
        None => since.after(*patience.idle),
    })
}

/// Waits until there are more bytes; `false` when the peer closed, or none came by `due`.
pub(super) fn readable_until<'a>(
    socket: &'a mut Socket,
    member: &'a ConnectionHandle,
    due: Tick,
) -> impl Future<Output = bool> + 'a {
    poll_readable(socket, member, move |_| due)
}

/// Waits until there are bytes; `false` when the peer closed, or none came by when they are due, which may depend on since
/// when the connection is draining.
///
/// No `async` function, whose future would hold what it captures twice.
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
            return Poll::Ready(false);
        }
        member.wake_at(cx, due);
        Poll::Pending
    })
}

/// How long a peer may go on sending after it was answered; and how long it may pause meanwhile.
pub(super) const LINGER: Duration = Duration::from_secs(30);
pub(super) const LINGER_PAUSE: Duration = Duration::from_secs(5);

/// How long it may once a drain has begun, or after it broke the protocol, and how long it may take for our last message.
pub(super) const LINGER_SHORT: Duration = Duration::from_secs(1);

/// How much is read of a peer that broke the protocol.
const LINGER_BYTES_MAX: usize = 256 * 1024;

/// Why we are done with a peer that may be sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// It has its response, and what it sends is not wanted any more.
    Answered,
    /// It broke the protocol.
    Refused,
}

/// Sends a last message, ends our direction and waits for the peer to end its own.
///
/// Closing a socket that has unread bytes resets the connection, and the reset may overtake the response: the peer would
/// never learn why (RFC 9112, section 9.6).
pub(super) async fn linger(
    mut socket: Socket,
    member: &ConnectionHandle,
    done: Done,
    message: &[u8],
) {
    let began = member.now();
    {
        let due = began.after(LINGER_SHORT);
        // a peer that takes nothing does not take the end of a TLS session either
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
            let too_much = done == Done::Refused && discarded > LINGER_BYTES_MAX;
            if !matches!(read, Ok(length) if length > 0) || too_much {
                return Poll::Ready(());
            }
            heard = member.now();
        }
        let due = match member.draining() {
            Some(drain) => began.max(drain).after(LINGER_SHORT),
            None if done == Done::Refused => began.after(LINGER_SHORT),
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
