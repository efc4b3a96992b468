//! Windows (RFC 9113, section 5.2).

use super::Reason;

/// Size of every window before anything was said about it.
pub const WINDOW_DEFAULT: u32 = 65_535;

/// Largest size of a window.
pub const WINDOW_MAX: u32 = (1 << 31) - 1;

/// How much we may send. Can be less than nothing, when the peer's settings shrink it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow(i64);

impl SendWindow {
    /// A window of this size.
    pub fn new(size: u32) -> Self {
        Self(i64::from(size))
    }

    /// Bytes that may be sent.
    #[inline]
    pub fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Sends bytes that are available.
    #[inline]
    pub fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.available());
        self.0 -= bytes as i64;
    }

    /// Widens the window, or narrows it.
    ///
    /// # Errors
    ///
    /// `FLOW_CONTROL_ERROR` when it grows too large.
    pub fn change(&mut self, by: i64) -> Result<(), Reason> {
        self.0 += by;
        if self.0 > i64::from(WINDOW_MAX) {
            return Err(Reason::FLOW_CONTROL_ERROR);
        }
        Ok(())
    }
}

/// How much the peer may send, and what it gets back as it is consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    /// What the peer may still send.
    available: u32,
    /// Consumed, and not yet given back.
    consumed: u32,
    size: u32,
}

impl ReceiveWindow {
    /// A window of this size, all of which the peer knows of.
    pub fn new(size: u32) -> Self {
        Self {
            available: size,
            consumed: 0,
            size,
        }
    }

    /// What the peer may still send.
    #[inline]
    pub fn available(self) -> u32 {
        self.available
    }

    /// What was received and is not consumed.
    #[cfg(test)]
    pub fn withheld(self) -> u32 {
        self.size - self.available - self.consumed
    }

    /// The peer sent bytes.
    ///
    /// # Errors
    ///
    /// `FLOW_CONTROL_ERROR` when they are more than it may send.
    #[inline]
    pub fn receive(&mut self, bytes: u32) -> Result<(), Reason> {
        let left = self.available.checked_sub(bytes);
        self.available = left.ok_or(Reason::FLOW_CONTROL_ERROR)?;
        Ok(())
    }

    /// Bytes were consumed; what is to be given back now. Small amounts wait.
    #[inline]
    pub fn consume(&mut self, bytes: u32) -> Option<u32> {
        self.consumed += bytes;
        debug_assert!(self.available + self.consumed <= self.size);
        if self.consumed < self.size.div_ceil(2) {
            return None;
        }
        self.available += self.consumed;
        Some(std::mem::take(&mut self.consumed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_window_may_be_negative_but_never_exceeds_its_maximum() {
        let mut window = SendWindow::new(100);
        window.take(60);
        assert_eq!(window.available(), 40);
        window.change(-100).unwrap();
        assert_eq!(window.available(), 0);
        window.change(61).unwrap();
        assert_eq!(window.available(), 1);
        window.change(i64::from(WINDOW_MAX) - 1).unwrap();
        assert_eq!(window.change(1), Err(Reason::FLOW_CONTROL_ERROR));
    }

    #[test]
    fn receive_window_is_updated_in_halves_and_never_grows() {
        let mut window = ReceiveWindow::new(100);
        let mut known = 100;
        for bytes in (1..=30).cycle().take(1000) {
            if bytes > known {
                assert_eq!(window.receive(bytes), Err(Reason::FLOW_CONTROL_ERROR));
                panic!("what is consumed comes back in time");
            }
            window.receive(bytes).unwrap();
            known -= bytes;
            if let Some(back) = window.consume(bytes) {
                assert!(back >= 50);
                known += back;
            }
            assert!(known <= 100);
        }
        assert!(window.receive(101).is_err());
        assert_eq!(
            ReceiveWindow::new(0).receive(1),
            Err(Reason::FLOW_CONTROL_ERROR)
        );
    }
}
