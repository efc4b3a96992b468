//! One stream: its state (RFC 9113, section 5.1), its windows, and its pending data.

use bytes::Bytes;
use http::HeaderMap;

use super::flow::{ReceiveWindow, SendWindow};

/// State of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not used yet.
    #[default]
    Idle,
    /// Both sides may send.
    Open,
    /// Our direction has ended.
    HalfClosedLocal,
    /// The peer's direction has ended.
    HalfClosedRemote,
    /// Both directions have ended.
    Closed,
}

impl State {
    /// Whether the peer may send.
    #[inline]
    pub fn can_receive(self) -> bool {
        matches!(self, State::Open | State::HalfClosedLocal)
    }

    /// Whether we may send.
    #[inline]
    pub fn can_send(self) -> bool {
        matches!(self, State::Open | State::HalfClosedRemote)
    }

    /// Returns the state after the first header block.
    #[must_use]
    pub fn opened(self) -> Self {
        match self {
            State::Idle => State::Open,
            other => other,
        }
    }

    /// Returns the state after the end of the peer's direction.
    #[must_use]
    pub fn end_received(self) -> Self {
        match self {
            State::Open => State::HalfClosedRemote,
            State::HalfClosedLocal => State::Closed,
            other => other,
        }
    }

    /// Returns the state after the end of our direction.
    #[must_use]
    pub fn end_sent(self) -> Self {
        match self {
            State::Open => State::HalfClosedLocal,
            State::HalfClosedRemote => State::Closed,
            other => other,
        }
    }
}

/// Continuation of a message after its pending bytes.
#[derive(Debug, Default)]
pub enum Tail {
    /// Unknown.
    #[default]
    More,
    /// End of the message.
    End,
    /// Trailers, then the end.
    Trailers(Box<HeaderMap>),
}

/// A stream, or a place without one.
#[derive(Debug)]
pub struct Stream {
    /// Stream number; 0 in a place without a stream.
    pub id: u32,
    /// State of the stream.
    pub state: State,
    /// Bytes that we may send.
    pub send: SendWindow,
    /// Bytes that the peer may send.
    pub receive: ReceiveWindow,
    /// Body bytes received and not consumed.
    pub held: u32,
    /// Body bytes still expected, if the message declared its length.
    pub expected: Option<u64>,
    /// Whether the head of the final response was sent or received.
    pub responded: bool,
    /// Whether the head of the message is still expected: no other frame is valid.
    pub expects_head: bool,
    /// Interim responses so far.
    pub interims: u32,
    /// Whether the response has no body, whatever its head declares.
    pub bodiless: bool,
    /// Number of bytes added to the connection's output before the stream's first one.
    pub begins_at: u64,
    /// Body bytes that wait for a window, or for room in the output.
    pub pending: Bytes,
    /// Continuation after the pending bytes.
    pub tail: Tail,
    /// Whether the stream is in the queue of streams with data to send.
    pub is_queued: bool,
}

impl Stream {
    /// Returns a stream that was just opened.
    pub fn new(id: u32, send_window: u32, receive_window: u32, expected: Option<u64>) -> Self {
        Self {
            id,
            state: State::Idle.opened(),
            send: SendWindow::new(send_window),
            receive: ReceiveWindow::new(receive_window),
            held: 0,
            expected,
            responded: false,
            expects_head: false,
            interims: 0,
            bodiless: false,
            begins_at: 0,
            pending: Bytes::new(),
            tail: Tail::More,
            is_queued: false,
        }
    }

    /// Whether data or an end is pending.
    #[inline]
    pub fn has_pending_data(&self) -> bool {
        !self.pending.is_empty() || !matches!(self.tail, Tail::More)
    }

    /// Counts received body bytes; `false` if they contradict the declared length.
    #[inline]
    pub fn count(&mut self, bytes: usize, end: bool) -> bool {
        let Some(left) = self.expected else {
            return true;
        };
        match left.checked_sub(bytes as u64) {
            Some(left) if left == 0 || !end => {
                self.expected = Some(left);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_states_follow_the_rfc() {
        use State::{Closed, HalfClosedLocal, HalfClosedRemote, Idle, Open};
        // state, may receive, may send, then after: opened, end received, end sent
        for (state, receives, sends, opened, received, sent) in [
            (Idle, false, false, Open, Idle, Idle),
            (Open, true, true, Open, HalfClosedRemote, HalfClosedLocal),
            (
                HalfClosedLocal,
                true,
                false,
                HalfClosedLocal,
                Closed,
                HalfClosedLocal,
            ),
            (
                HalfClosedRemote,
                false,
                true,
                HalfClosedRemote,
                HalfClosedRemote,
                Closed,
            ),
            (Closed, false, false, Closed, Closed, Closed),
        ] {
            assert_eq!(state.can_receive(), receives, "{state:?}");
            assert_eq!(state.can_send(), sends, "{state:?}");
            assert_eq!(state.opened(), opened, "{state:?}");
            assert_eq!(state.end_received(), received, "{state:?}");
            assert_eq!(state.end_sent(), sent, "{state:?}");
        }
    }

    #[test]
    fn body_length_must_equal_content_length() {
        for (expected, pieces, fits) in [
            (None, &[(5, false), (0, true)][..], true),
            (Some(5), &[(5, true)], true),
            (Some(5), &[(2, false), (3, false), (0, true)], true),
            (Some(5), &[(2, false), (4, false)], false),
            (Some(5), &[(2, false), (2, true)], false),
            (Some(0), &[(1, false)], false),
            (Some(0), &[(0, true)], true),
        ] {
            let mut stream = Stream::new(1, 0, 0, expected);
            let counted = pieces.iter().all(|&(bytes, end)| stream.count(bytes, end));
            assert_eq!(counted, fits, "{expected:?} {pieces:?}");
        }
    }
}
