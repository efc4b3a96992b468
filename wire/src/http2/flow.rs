//! Flow control windows (RFC 9113, section 5.2).

use super::Reason;

/// Initial size of every window, in bytes.
pub const WINDOW_DEFAULT: u32 = 65_535;

/// Maximum size of a window, in bytes.
pub const WINDOW_MAX: u32 = (1 << 31) - 1;

/// Bytes that may be sent. Negative after the peer's SETTINGS have reduced it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow(i64);

impl SendWindow {
    /// Returns a window of this size.
    pub fn new(size: u32) -> Self {
        Self(i64::from(size))
    }

    /// Returns the number of bytes that may be sent.
    #[inline]
    pub fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Reduces the window by sent bytes, at most the available ones.
    #[inline]
    pub fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.available());
        self.0 -= bytes as i64;
    }

    /// Increases or reduces the window.
    ///
    /// # Errors
    ///
    /// `FLOW_CONTROL_ERROR` if it exceeds the maximum.
    pub fn change(&mut self, by: i64) -> Result<(), Reason> {
        self.0 += by;
        if self.0 > i64::from(WINDOW_MAX) {
            return Err(Reason::FLOW_CONTROL_ERROR);
        }
        Ok(())
    }
}

/// Bytes that the peer may send, replenished as they are consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    /// Bytes that the peer may still send.
    available: u32,
    /// Consumed bytes not yet returned by a window update.
    consumed: u32,
    size: u32,
}

impl ReceiveWindow {
    /// Returns a window of this size, which the peer knows.
    pub fn new(size: u32) -> Self {
        Self {
            available: size,
            consumed: 0,
            size,
        }
    }

    /// Returns the number of bytes that the peer may still send.
    #[inline]
    pub fn available(self) -> u32 {
        self.available
    }

    /// Returns the number of bytes received and not consumed.
    #[cfg(test)]
    pub fn withheld(self) -> u32 {
        self.size - self.available - self.consumed
    }

    /// Counts received bytes.
    ///
    /// # Errors
    ///
    /// `FLOW_CONTROL_ERROR` if they exceed the window.
    #[inline]
    pub fn receive(&mut self, bytes: u32) -> Result<(), Reason> {
        let left = self.available.checked_sub(bytes);
        self.available = left.ok_or(Reason::FLOW_CONTROL_ERROR)?;
        Ok(())
    }

    /// Marks bytes as consumed; returns the increment for a window update, once half of the window is consumed.
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
