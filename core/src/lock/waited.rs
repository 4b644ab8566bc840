//! For how long all claims at a word have waited together. A profile of holders asks at the end of each hold.
//!
//! The time between two events counts once for each claim that waited meanwhile. So what is attributed to all holders adds up
//! to the time that all claims have waited, also those that gave up; and it takes no look at each claim.

use std::sync::atomic::{AtomicBool, Ordering};

use super::WaiterListStore;
use crate::clock::{Timestamp, now};
use crate::queue::Location;

/// Not of the crate's primitives: it is set once.
static IS_COUNTED: AtomicBool = AtomicBool::new(false);

/// Has waits counted from now on.
pub fn count_waits() {
    IS_COUNTED.store(true, Ordering::Relaxed);
}

/// The time that the claims of a line have waited.
#[derive(Debug, Default)]
pub(super) struct Waited {
    nanos: u64,
    /// When it was added to last; the default: never.
    until: Timestamp,
}

impl Waited {
    /// Adds the time since the last call, for so many claims. Called before their number changes.
    pub(super) fn advance(&mut self, claims: u32) {
        if IS_COUNTED.load(Ordering::Relaxed) {
            self.advance_to(now(), claims);
        }
    }

    fn advance_to(&mut self, now: Timestamp, claims: u32) {
        if claims > 0 && self.until != Timestamp::default() {
            let passed = now.as_nanos().saturating_sub(self.until.as_nanos());
            self.nanos = self.nanos.saturating_add(passed.saturating_mul(claims.into()));
        }
        self.until = now;
    }
}

impl WaiterListStore {
    /// Returns how many nanoseconds claims have waited since the last call.
    ///
    /// All of them together.
    pub fn take_waited(&self, location: Location) -> u64 {
        self.critical_section_at(location, |section| {
            let Some(line) = section.lists.policy.line_mut(location) else { return 0 };
            line.waited.advance(line.claims);
            std::mem::take(&mut line.waited.nanos)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_counts_once_for_each_claim_that_waits_meanwhile() {
        let mut waited = Waited::default();
        for (moment, claims) in [(1000, 0), (1010, 1), (1030, 2), (1060, 1)] {
            waited.advance_to(Timestamp::from_nanos(moment), claims);
        }
        // One from 1000 to 1060, the other one from 1010 to 1030.
        assert_eq!(waited.nanos, 80);
        waited.nanos = 0;
        waited.advance_to(Timestamp::from_nanos(1100), 1);
        assert_eq!(waited.nanos, 40);
    }
}
