//! Points in time.

/// Milliseconds since the first instant that the journal converted, plus one; 0 is [`Moment::NEVER`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// Time of an event that has not happened.
    pub const NEVER: Self = Self(0);

    /// Time elapsed since an earlier moment.
    pub fn since(self, earlier: Self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}
