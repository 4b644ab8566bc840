//! Looking at a bucket: its waiters, the locks on their way to one, and since when a word is held.
//!
//! # How long a word has been held, as long as claims wait
//! JavaScript notes no time when it takes a free lock. But while a claim is counted, every release comes to native
//! code. So a lock that native code finds held then has been held ever since, unless it has been released:
//!
//! | event | whoever holds the word has held it |
//! |---|---|
//! | a claim joins the line, or retries in vain, or the service looks | since then, if nothing is known of an earlier time |
//! | native code takes it, for a claim or for a newcomer | since then |
//! | a lock is freed, or notified by code that uses the bare word | for an unknown time: a newcomer may have taken it |
//!
//! In a strict line only native code gives anything to anybody, so releases of others change nothing. Code that frees
//! the bare word and calls nothing of this package is not seen.

use rustc_hash::FxHashSet;

use super::bucket::Section;
use super::{Request, Waiter, WaiterListStore};
use crate::clock::Timestamp;
use crate::queue::counters::Counted;
use crate::queue::{Listed, Location};

impl Section<'_> {
    pub(super) fn found_held(&mut self, location: Location) {
        let now = self.now();
        if let Some(line) = self.lists.policy.line_mut(location) {
            line.held_since.get_or_insert(now);
        }
    }

    pub(super) fn was_taken(&mut self, location: Location) {
        // Mostly there are no lines: then nobody asks for the time.
        if self.lists.policy.is_empty() {
            return;
        }
        let now = self.now();
        if let Some(line) = self.lists.policy.line_mut(location) {
            line.held_since = Some(now);
        }
    }

    /// Notes that the lock was freed. It may have been taken again.
    pub(super) fn was_freed(&mut self, location: Location) {
        if let Some(line) = self.lists.policy.line_mut(location) {
            line.held_since = None;
        }
    }
}

impl WaiterListStore {
    /// Returns since when at least the word has been held; `None` if nobody waits for it, or nothing is known.
    pub fn held_since(&self, location: Location) -> Option<Timestamp> {
        self.critical_section_at(location, |section| section.lists.policy.line(location)?.held_since)
    }

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
