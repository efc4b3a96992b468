//! Hold of a request on its stream.

use std::rc::Rc;

use super::link::Link;
use super::slot::ReceivedResponse;
use wire::http2::Reason;

/// Purpose of a hold on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Reads the response.
    Read,
    /// Sends the rest of the request.
    Write,
}

/// A hold on a stream. Dropping the one that reads cancels the stream, unless its response is complete.
#[derive(Debug)]
pub(super) struct StreamHandle {
    pub(super) link: Rc<Link>,
    pub(super) place: usize,
    purpose: Purpose,
}

impl StreamHandle {
    /// Returns the hold of the request that opened the stream.
    pub(super) fn new(link: &Rc<Link>, place: usize) -> Self {
        Self {
            link: Rc::clone(link),
            place,
            purpose: Purpose::Read,
        }
    }

    /// Returns a hold for the task that sends the rest of the request.
    pub(super) fn for_the_rest(&self) -> Self {
        self.link.0.borrow_mut().slots[self.place].holders += 1;
        Self {
            link: Rc::clone(&self.link),
            place: self.place,
            purpose: Purpose::Write,
        }
    }
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        let place = self.place;
        let state = &mut *self.link.0.borrow_mut();
        let slot = &mut state.slots[place];
        slot.holders -= 1;
        let last = slot.holders == 0;
        let complete = slot.ended;
        if self.purpose == Purpose::Read && !complete {
            state.engine.cancel(place, Reason::CANCEL);
            slot.wake_writer();
        }
        if last {
            // the next stream in this place finds no data of this one
            *slot = ReceivedResponse::default();
            if complete && state.engine.is_sending(place) {
                slot.detached = true;
            } else {
                state.engine.vacate(place);
            }
        }
        state.flush();
    }
}
