//! Random numbers for the tests under load. Their seeds are fixed; chance lies in the threads anyway.

use waitasync_core::clock::{Timestamp, now};

/// `SplitMix64`.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.next().is_multiple_of(count)
    }

    /// A moment soon, or never.
    pub(crate) fn deadline(&mut self) -> Timestamp {
        if self.one_in(3) { Timestamp::NEVER } else { Timestamp::from_nanos(now().as_nanos() + self.next() % 300_000) }
    }
}
