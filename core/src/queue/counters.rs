//! Counters of waiters that JavaScript reads directly: an operation that concerns none needs no native call.
//!
//! # Why a notification that finds no waiter takes no lock
//! A waiter raises the counter of its word, then passes a `SeqCst` fence, then reads the word. A notifier writes the
//! word, then passes a `SeqCst` fence, then reads the counter. In the single order of the two fences one comes first:
//! if the notifier's, the waiter reads the new value and does not wait; if the waiter's, the notifier sees it counted
//! and takes the lock. (The fence is needed because the program may have written the word without an atomic operation.)
//!
//! A notifier that reads a count other than 0 needs no fence, since it takes the lock: a waiter that had the lock
//! before is in the list, and one that gets it afterwards reads the new value.
//!
//! # Which words share a counter
//! With 256 buckets, no two of the same four mebibytes do: often a lock lies beside a word that somebody always waits
//! for, and releasing it must not take a call for that. Words farther apart seldom do, unless at large powers of two.
//!
//! The counters of the words of a cache line are neighbours, and so are those of the same line of successive pages: a
//! thread that goes through words in either way finds the counters in the caches. A page of counters takes memory once
//! one of them has been raised.

#![allow(unsafe_code, reason = "memory that the allocator has zeroed")]

use super::Location;
use super::location::CACHE_LINE;
use crate::sync::{AtomicI32, Ordering, fence};

/// How many counters are in a cache line.
const LINE: usize = CACHE_LINE / size_of::<i32>();

/// Returns the number of counters of words: 2^20 where there are 256 buckets, and few in the small stores of tests.
const fn words(buckets: usize) -> usize {
    LINE * buckets * buckets
}

/// Returns the number of the policy's counters, which are of words, too: fewer, since the policy counts rare things.
const fn policy(buckets: usize) -> usize {
    let some = words(buckets) >> 6;
    if some < LINE { LINE } else { some }
}

/// The counters of a store: of waiters, by word; behind them the policy's, by word, too; and the last is their sum.
///
/// No counter is a field: a store itself never changes, so the compiler keeps its pointers over atomic operations.
#[derive(Debug)]
pub(crate) struct Counters {
    memory: Box<[AtomicI32]>,
    /// The index of the first counter that is used, at the start of a cache line.
    first: usize,
    /// The numbers of counters of waiters and of counters of the policy: powers of two.
    words: usize,
    policy: usize,
}

impl Counters {
    /// Makes counters for so many `buckets`, a power of two.
    pub(super) fn new(buckets: usize) -> Self {
        let (words, policy) = (words(buckets), policy(buckets));
        let memory = zeroed(LINE + words + policy);
        let first = if cfg!(feature = "model") { 0 } else { memory.as_ptr().align_offset(CACHE_LINE) };
        Self { memory, first, words, policy }
    }

    /// Returns all counters, in whole cache lines. `lib/agent/registers.js` reads them.
    pub(super) fn all(&self) -> &[AtomicI32] {
        &self.memory[self.first..][..self.memory.len() - LINE]
    }

    /// Returns the index of a word's counter; as in `lib/agent/registers.js`.
    fn index_of(&self, location: Location) -> usize {
        let word = (location.address() / size_of::<i32>()) as u32;
        ((word & 1023) ^ (word >> 6) ^ (word >> 4 << 14)) as usize & (self.words - 1)
    }

    pub(crate) fn of_word(&self, location: Location) -> &AtomicI32 {
        &self.memory[self.first + self.index_of(location)]
    }

    pub(crate) fn of_policy(&self, location: Location) -> &AtomicI32 {
        &self.memory[self.first + self.words + (self.index_of(location) & (self.policy - 1))]
    }

    fn total(&self) -> &AtomicI32 {
        // No other counter is at the end of the memory, since the first one begins within the first line.
        &self.memory[self.memory.len() - 1]
    }

    /// Counts one more of the policy's at `location`, or one less.
    pub(crate) fn count(&self, location: Location, change: i32) {
        self.of_policy(location).fetch_add(change, Ordering::SeqCst);
        self.total().fetch_add(change, Ordering::SeqCst);
    }

    pub(crate) fn any(&self) -> bool {
        self.total().load(Ordering::SeqCst) != 0
    }
}

/// Makes `length` counters, all 0. The system provides their memory when they are first changed.
#[cfg(not(feature = "model"))]
fn zeroed(length: usize) -> Box<[AtomicI32]> {
    let memory: Box<[i32]> = vec![0; length].into();
    // SAFETY: an atomic number has the layout of a plain one, and the box owns its memory alone.
    unsafe { Box::from_raw(Box::into_raw(memory) as *mut [AtomicI32]) }
}

#[cfg(feature = "model")]
fn zeroed(length: usize) -> Box<[AtomicI32]> {
    (0..length).map(|_| AtomicI32::default()).collect()
}

/// Whether the counter says that nobody waits: `true` is certain for a thread that has changed the word before; `false`
/// is a reason to take the lock.
pub(super) fn is_zero(counter: &AtomicI32) -> bool {
    counter.load(Ordering::Relaxed) == 0 && {
        fence(Ordering::SeqCst);
        counter.load(Ordering::Relaxed) == 0
    }
}

/// One more waiter is counted, until this is dropped.
pub(crate) struct Counted<'a>(&'a AtomicI32);

impl<'a> Counted<'a> {
    /// Counts a waiter. The calling thread's later reads come after that.
    pub(crate) fn new(counter: &'a AtomicI32) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Self(counter)
    }

    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Some address that ends no page.
    const BASE: usize = 0x7f12_3456_7000;

    /// As many as the store of a process has.
    const BUCKETS: usize = 256;
    const WORDS: usize = super::words(BUCKETS);

    fn distinct(start: usize, words: usize, stride: usize) -> usize {
        let counters = Counters::new(BUCKETS);
        let index = |nth| counters.index_of(Location::from_address(start + nth * stride));
        (0..words).map(index).collect::<HashSet<_>>().len()
    }

    #[test]
    fn words_of_the_same_four_mebibytes_share_no_counter() {
        assert_eq!(distinct(BASE & !(4 * WORDS - 1), WORDS, 4), WORDS);
    }

    #[test]
    fn regular_distances_make_words_share_counters_seldom() {
        for shift in 6..=14 {
            assert!(distinct(BASE, 10_000, 1 << shift) > 9_000, "at {} bytes", 1 << shift);
            assert!(distinct(BASE, 10_000, (1 << shift) + 64) > 9_000, "at {} bytes", (1 << shift) + 64);
        }
    }
}
