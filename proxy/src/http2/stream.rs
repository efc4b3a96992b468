//! One stream: its state (RFC 9113, section 5.1), its windows, and what waits to be sent on it.

use bytes::Bytes;
use http::HeaderMap;

use super::flow::{ReceiveWindow, SendWindow};

/// Which directions of a stream are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing of it was seen yet.
    #[default]
    Idle,
    /// Both sides may send.
    Open,
    /// We have sent everything.
    HalfClosedLocal,
    /// The peer has sent everything.
    HalfClosedRemote,
    /// Over.
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

    /// The first header block came.
    #[must_use]
    pub fn opened(self) -> Self {
        match self {
            State::Idle => State::Open,
            other => other,
        }
    }

    /// The peer ended its side.
    #[must_use]
    pub fn end_received(self) -> Self {
        match self {
            State::Open => State::HalfClosedRemote,
            State::HalfClosedLocal => State::Closed,
            other => other,
        }
    }

    /// We ended our side.
    #[must_use]
    pub fn end_sent(self) -> Self {
        match self {
            State::Open => State::HalfClosedLocal,
            State::HalfClosedRemote => State::Closed,
            other => other,
        }
    }
}

/// How a message goes on after what waits of it.
#[derive(Debug, Default)]
pub enum Tail {
    /// Not known yet.
    #[default]
    More,
    /// It does not.
    End,
    /// With trailers.
    Trailers(Box<HeaderMap>),
}

/// A stream, or the place of one.
#[derive(Debug)]
pub struct Stream {
    /// Its number; 0 in a place without a stream.
    pub id: u32,
    /// Its state.
    pub state: State,
    /// What we may send.
    pub send: SendWindow,
    /// What the peer may send.
    pub receive: ReceiveWindow,
    /// Body bytes that came and were not consumed yet.
    pub held: u32,
    /// Body bytes that are still to come, if the message's head said how many.
    pub expected: Option<u64>,
    /// Whether the head of the final response has gone by.
    pub responded: bool,
    /// Whether no head of a message came yet: nothing else may.
    pub awaits_head: bool,
    /// Interim responses so far.
    pub interims: u32,
    /// Whether the response can have no body, whatever its head says.
    pub bodiless: bool,
    /// Where in all that we say the stream begins.
    pub begins_at: u64,
    /// Body bytes that wait for a window, or for room.
    pub pending: Bytes,
    /// What follows them.
    pub tail: Tail,
    /// Whether it is in the queue of streams that can send.
    pub in_line: bool,
}

impl Stream {
    /// A stream that was just opened.
    pub fn new(id: u32, send_window: u32, receive_window: u32, expected: Option<u64>) -> Self {
        Self {
            id,
            state: State::Idle.opened(),
            send: SendWindow::new(send_window),
            receive: ReceiveWindow::new(receive_window),
            held: 0,
            expected,
            responded: false,
            awaits_head: false,
            interims: 0,
            bodiless: false,
            begins_at: 0,
            pending: Bytes::new(),
            tail: Tail::More,
            in_line: false,
        }
    }

    /// Whether something that we send waits.
    #[inline]
    pub fn waits(&self) -> bool {
        !self.pending.is_empty() || !matches!(self.tail, Tail::More)
    }

    /// Counts body bytes that came; `false` if they are not as many as the head said.
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
