//! What a peer may ask of us for nothing.
//!
//! Frames that carry no request and no body cost us time and, some of them, an answer. Each takes one from a purse; each
//! piece of real work puts something in, and so does time. An honest peer never sees the bottom of it: it acknowledges
//! what it gets and opens windows for what it reads. One that floods us does, whatever mixture of frames it uses.

use super::Reason;

/// What a purse holds at most, and at first.
const PURSE: u32 = 1000;

/// Earned by each tick of the driver's clock, a tenth of a second.
const PER_TICK: u64 = 10;

/// Earned by a request: its stream may be reset, its windows opened, its settings changed.
const PER_REQUEST: u32 = 4;

/// Earned by a frame of a request's body.
const PER_DATA_RECEIVED: u32 = 2;

/// Earned by a frame of a response's body: the peer opens two windows for it, perhaps bit by bit, and may measure the line.
const PER_DATA_SENT: u32 = 20;

/// Frames of one header block; with all its limit of bytes, a block fits into four of the size that peers use.
pub const BLOCK_FRAMES_MAX: u32 = 64;

/// Watches what one peer does.
#[derive(Debug)]
pub struct Guard {
    purse: u32,
    tick: u64,
    /// Streams that we reset for the peer's errors.
    error_resets: usize,
    error_resets_max: usize,
    /// Streams that the peer reset before they were looked at, since the last look.
    pending_resets: usize,
    pending_resets_max: usize,
}

impl Guard {
    /// A guard that begins now.
    pub fn new(error_resets_max: usize, pending_resets_max: usize) -> Self {
        Self {
            purse: PURSE,
            tick: 0,
            error_resets: 0,
            error_resets_max,
            pending_resets: 0,
            pending_resets_max,
        }
    }

    /// Time has come to this tick, and everything that is there was looked at.
    #[inline]
    pub fn advance(&mut self, tick: u64) {
        self.pending_resets = 0;
        if tick > self.tick {
            let earned = (tick - self.tick).saturating_mul(PER_TICK);
            self.tick = tick;
            self.earn(u32::try_from(earned).unwrap_or(PURSE));
        }
    }

    #[inline]
    fn earn(&mut self, amount: u32) {
        self.purse = self.purse.saturating_add(amount).min(PURSE);
    }

    /// A request came.
    #[inline]
    pub fn request(&mut self) {
        self.earn(PER_REQUEST);
    }

    /// Bytes of a body came.
    #[inline]
    pub fn data_received(&mut self) {
        self.earn(PER_DATA_RECEIVED);
    }

    /// Bytes of a body were sent.
    #[inline]
    pub fn data_sent(&mut self) {
        self.earn(PER_DATA_SENT);
    }

    /// A frame that asks for nothing we are here for.
    ///
    /// # Errors
    ///
    /// `ENHANCE_YOUR_CALM` when there were too many.
    #[inline]
    pub fn idle_frame(&mut self) -> Result<(), Reason> {
        self.purse = self.purse.checked_sub(1).ok_or(Reason::ENHANCE_YOUR_CALM)?;
        Ok(())
    }

    /// A stream is reset because of what the peer did.
    ///
    /// # Errors
    ///
    /// `ENHANCE_YOUR_CALM` when there were too many.
    pub fn error_reset(&mut self) -> Result<(), Reason> {
        self.error_resets += 1;
        within(self.error_resets, self.error_resets_max)
    }

    /// The peer reset a stream that was not yet looked at.
    ///
    /// # Errors
    ///
    /// `ENHANCE_YOUR_CALM` when there were too many.
    pub fn pending_reset(&mut self) -> Result<(), Reason> {
        self.pending_resets += 1;
        within(self.pending_resets, self.pending_resets_max)
    }
}

fn within(count: usize, max: usize) -> Result<(), Reason> {
    if count > max {
        return Err(Reason::ENHANCE_YOUR_CALM);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_exceeds_the_limits_and_normal_traffic_does_not() {
        let mut guard = Guard::new(1, 1);
        let ended = (0..10_000).position(|_| guard.idle_frame().is_err());
        assert_eq!(ended, Some(PURSE as usize));
        let mut guard = Guard::new(1, 1);
        for _ in 0..100_000 {
            guard.data_sent();
            // two windows and a PING
            for _ in 0..3 {
                guard.idle_frame().unwrap();
            }
        }
        // a PING every second, for days
        for second in 0..1_000_000 {
            guard.advance(second * 10);
            guard.idle_frame().unwrap();
        }
    }

    #[test]
    fn reset_count_is_cumulative_and_pending_resets_are_per_interval() {
        let mut guard = Guard::new(2, 2);
        for tick in 0..10 {
            guard.pending_reset().unwrap();
            guard.pending_reset().unwrap();
            guard.advance(tick);
        }
        for _ in 0..2 {
            guard.pending_reset().unwrap();
        }
        assert_eq!(guard.pending_reset(), Err(Reason::ENHANCE_YOUR_CALM));
        guard.error_reset().unwrap();
        guard.advance(1000);
        guard.error_reset().unwrap();
        assert_eq!(guard.error_reset(), Err(Reason::ENHANCE_YOUR_CALM));
    }
}
