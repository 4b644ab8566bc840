//! Looking at a bucket: which waiters there are, and which locks are on their way to a waiter.

use rustc_hash::FxHashSet;

use super::{Request, Waiter, WaiterListStore};
use crate::clock::Timestamp;
use crate::queue::counters::Counted;
use crate::queue::{Listed, Location};

impl WaiterListStore {
    /// Shows `body` the waiters of a bucket, in order; the locks on their way to a waiter; and a function that tells
    /// [`Self::held_since`].
    ///
    /// Meanwhile nothing at these locations, or at those of `held` in the bucket, is released: a waiter is counted
    /// there, so a thread that releases comes to native code. A release that looked at the counter before may still
    /// take place.
    pub fn inspect<R>(
        &self,
        bucket: usize,
        held: &FxHashSet<Location>,
        body: impl FnOnce(
            &[(Location, Listed<Request>)],
            &[(Location, Waiter)],
            &dyn Fn(Location) -> Option<Timestamp>,
        ) -> R,
    ) -> R {
        self.critical_section(bucket, |section| {
            let granted: Vec<_> =
                section.lists.policy.granted.iter().map(|(&at, waiter)| (at, waiter.clone())).collect();
            let locations = held.iter().copied().chain(granted.iter().map(|&(location, _)| location));
            let _counted: Vec<_> = locations.map(|location| Counted::new(self.counter(location))).collect();
            let mut waiting = Vec::new();
            for location in section.lists.waiters.locations() {
                let listed = section.waiters(location).filter_map(|key| section.listed(key));
                waiting.extend(listed.map(|listed| (location, listed.clone())));
            }
            let policy = &section.lists.policy;
            body(&waiting, &granted, &|location| policy.line(location)?.held_since)
        })
    }

    /// Returns the locations by the index of their bucket.
    pub fn by_bucket(&self, locations: impl Iterator<Item = Location>) -> Vec<FxHashSet<Location>> {
        let mut buckets = vec![FxHashSet::default(); self.buckets.len()];
        for location in locations {
            buckets[self.index_of(location)].insert(location);
        }
        buckets
    }
}
