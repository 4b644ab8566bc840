//! How many wait, counted where JavaScript can read it: so an operation that concerns no waiter needs no lock and no native call.
//!
//! # Why a notification that finds no waiter takes no lock
//! A waiter raises the counter of its word, then passes a `SeqCst` fence, then reads the word. A notifier writes the word, then
//! passes a `SeqCst` fence, then reads the counter. In the single order of the two fences one comes first: if the notifier's,
//! the waiter reads the new value and does not wait; if the waiter's, the notifier sees it counted and takes the lock. (The
//! fence is needed because the program may have written the word without an atomic operation.)
//!
//! A notifier that reads a count other than 0 needs no fence, since it takes the lock: a waiter that had the lock before is in
//! the list, and one that gets it afterwards reads the new value.
//!
//! # Which words share a counter
//! The words of a cache line share a bucket: threads that use them contend for that line anyway, and a thread that goes through
//! neighbouring words finds what it needs in the caches. They do not share a counter: often a lock lies beside a word that
//! somebody waits for all the time, and releasing the lock must not take a call for that. Each bucket has a cache line of
//! counters, one for each of the words.

use crossbeam_utils::CachePadded;

use super::location::{CACHE_LINE, Location};
use crate::sync::{AtomicI32, Ordering, fence};

/// A cache line of counters.
pub type CounterLine = [AtomicI32; COUNTERS];

/// How many counters are in a line.
const COUNTERS: usize = CACHE_LINE / 4;

/// The counters of a store: for each bucket those of its words; behind them one for each bucket, which the policy uses.
#[derive(Debug)]
pub(super) struct Counters {
    lines: Box<[CachePadded<CounterLine>]>,
    buckets: usize,
}

impl Counters {
    pub(super) fn new(buckets: usize) -> Self {
        Self { lines: (0..buckets + buckets.div_ceil(COUNTERS)).map(|_| CachePadded::default()).collect(), buckets }
    }

    pub(super) fn lines(&self) -> &[CachePadded<CounterLine>] {
        &self.lines
    }

    /// The counter of the waiters at `location`, which falls into `bucket`.
    pub(super) fn of_word(&self, bucket: usize, location: Location) -> &AtomicI32 {
        &self.lines[bucket][location.address() / 4 % COUNTERS]
    }

    /// The policy's counter of a bucket.
    pub(super) fn of_bucket(&self, bucket: usize) -> &AtomicI32 {
        &self.lines[self.buckets + bucket / COUNTERS][bucket % COUNTERS]
    }
}

/// Whether the counter says that nobody waits: `true` is certain for a thread that has changed the word before; `false` is a
/// reason to take the lock.
pub(super) fn is_zero(counter: &AtomicI32) -> bool {
    counter.load(Ordering::Relaxed) == 0 && {
        fence(Ordering::SeqCst);
        counter.load(Ordering::Relaxed) == 0
    }
}

/// One more waiter is counted, until this is dropped.
pub(crate) struct Counted<'a>(&'a AtomicI32);

impl<'a> Counted<'a> {
    /// The calling thread's later reads come after the count.
    pub(crate) fn new(counter: &'a AtomicI32) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Self(counter)
    }

    /// The waiter stays counted.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
