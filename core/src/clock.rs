//! Monotonic time as one word, for waiters and atomics.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Nanoseconds since the first call of [`now`] in this process. Monotonic; lasts 584 years.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Later than every moment: the deadline of a wait without a timeout.
    pub const NEVER: Self = Self(u64::MAX);

    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the moment `milliseconds` later, rounded up to a whole nanosecond: a timeout is never early.
    /// Not-a-number and everything beyond the range is [`Self::NEVER`]; a negative number counts as 0.
    #[must_use]
    pub fn after_millis(self, milliseconds: f64) -> Self {
        let nanos = (milliseconds * 1e6).ceil();
        if nanos < 9.2e18 { Self(self.0.saturating_add(nanos.max(0.0) as u64)) } else { Self::NEVER }
    }

    #[must_use]
    pub const fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_nanos() as u64))
    }

    /// Returns how long it is from `earlier` to `self`; zero if `self` is not later.
    pub const fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

pub fn now() -> Timestamp {
    Timestamp(epoch().elapsed().as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_rounded_up_and_saturates() {
        let start = Timestamp::from_nanos(10);
        assert_eq!(start.after_millis(0.000_000_1), Timestamp::from_nanos(11));
        assert_eq!(start.after_millis(1.5), Timestamp::from_nanos(1_500_010));
        assert_eq!(start.after_millis(-1.0), start);
        for never in [f64::INFINITY, f64::NAN, f64::MAX, 1e13] {
            assert_eq!(start.after_millis(never), Timestamp::NEVER, "{never}");
        }
    }
}
