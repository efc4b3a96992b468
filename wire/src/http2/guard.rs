//! Limits for frames that cause work without carrying any.
//!
//! Frames without a request or a body cost time and, some of them, an answer. Each takes one token from a bucket
//! (`budget`); requests, body frames and time add tokens. An honest peer never empties the bucket: it acknowledges
//! received frames and opens windows for read bytes. A flooding peer does, with any mixture of frames.

use super::Reason;

/// Maximum and initial tokens.
const BUDGET_MAX: u32 = 1000;

/// Tokens per tick of 0.1 s.
const PER_TICK: u64 = 10;

/// Tokens per request: its stream may be reset, its windows opened, its settings changed.
const PER_REQUEST: u32 = 4;

/// Tokens per received body frame.
const PER_DATA_RECEIVED: u32 = 2;

/// Tokens per sent body frame: the peer opens two windows for it, perhaps in small steps, and may measure latency by
/// PING.
const PER_DATA_SENT: u32 = 20;

/// Maximum frames of one header block; even the largest permitted block fits into four frames of the usual size.
pub const BLOCK_FRAMES_MAX: u32 = 64;

/// Limits of one peer.
#[derive(Debug)]
pub struct Guard {
    budget: u32,
    tick: u64,
    /// Streams reset for the peer's errors.
    error_resets: usize,
    error_resets_max: usize,
    /// Streams that the peer reset before they were processed, since the last [`Guard::advance`].
    pending_resets: usize,
    pending_resets_max: usize,
}

impl Guard {
    /// Returns a guard with a full bucket.
    pub fn new(error_resets_max: usize, pending_resets_max: usize) -> Self {
        Self {
            budget: BUDGET_MAX,
            tick: 0,
            error_resets: 0,
            error_resets_max,
            pending_resets: 0,
            pending_resets_max,
        }
    }

    /// Advances the clock to this tick, after all received requests were processed.
    #[inline]
    pub fn advance(&mut self, tick: u64) {
        self.pending_resets = 0;
        if tick > self.tick {
            let earned = (tick - self.tick).saturating_mul(PER_TICK);
            self.tick = tick;
            self.earn(u32::try_from(earned).unwrap_or(BUDGET_MAX));
        }
    }

    #[inline]
    fn earn(&mut self, amount: u32) {
        self.budget = self.budget.saturating_add(amount).min(BUDGET_MAX);
    }

    /// Adds tokens for a request.
    #[inline]
    pub fn request(&mut self) {
        self.earn(PER_REQUEST);
    }

    /// Adds tokens for received body bytes.
    #[inline]
    pub fn data_received(&mut self) {
        self.earn(PER_DATA_RECEIVED);
    }

    /// Adds tokens for sent body bytes.
    #[inline]
    pub fn data_sent(&mut self) {
        self.earn(PER_DATA_SENT);
    }

    /// Takes a token for a frame without work.
    ///
    /// # Errors
    ///
    /// `ENHANCE_YOUR_CALM` if there are none left.
    #[inline]
    pub fn idle_frame(&mut self) -> Result<(), Reason> {
        self.budget = self
            .budget
            .checked_sub(1)
            .ok_or(Reason::ENHANCE_YOUR_CALM)?;
        Ok(())
    }

    /// Counts a stream that is reset for the peer's error.
    ///
    /// # Errors
    ///
    /// `ENHANCE_YOUR_CALM` beyond the limit.
    pub fn error_reset(&mut self) -> Result<(), Reason> {
        self.error_resets += 1;
        within(self.error_resets, self.error_resets_max)
    }

    /// Counts a stream that the peer reset before it was processed.
    ///
    /// # Errors
    ///
    /// `ENHANCE_YOUR_CALM` beyond the limit.
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
        assert_eq!(ended, Some(BUDGET_MAX as usize));
        let mut guard = Guard::new(1, 1);
        for _ in 0..100_000 {
            guard.data_sent();
            // two window updates and a PING
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
