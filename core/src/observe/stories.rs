//! What was reported of a wait last, as a number: a wait is reported again when its story has changed.
//!
//! | a wait | its story |
//! |---|---|
//! | on a cycle | the cycle, an odd number |
//! | on none | the holders that are older than the period; without such, all holders; an even number |
//!
//! Holders that come and go are no news: a wait that is on no cycle is reported again only because of an older holder,
//! and once it has lasted twice as long. That a cycle has come or gone is news at once.
//!
//! **One cycle, one report**, whichever of its threads finds it first. [`Stories`] has the cycles that have been
//! reported. A thread looks at all holds and waits, and then, in one critical section, enters its cycle and forgets the
//! cycles that were reported before it looked and were not there any more.
//!
//! **One report for the threads that block at one place for one lock.** [`Covered`] has the waits of blocked threads
//! that were reported, or counted in another thread's report, with their stories.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{LazyLock, Mutex};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::clock::{Timestamp, now};
use crate::sync::lock;

/// The number of a story; 0: nothing was reported. It has 30 bits, which V8 keeps without a box.
pub type Story = u32;

pub fn hash(value: impl Hash) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(value)
}

/// Returns the story of a cycle. `cycle`: see [`Stories::is_first`].
pub const fn of_cycle(cycle: u64) -> Story {
    cycle as u32 >> 2 | 1
}

/// Who keeps a wait waiting.
#[derive(Clone, Copy, Default)]
pub struct Keepers {
    all: u64,
    old: u64,
    has_old: bool,
}

impl Keepers {
    /// Adds a holder, by its key. `is_old`: whether it is older than the period.
    pub fn add(&mut self, holder: u64, is_old: bool) {
        self.all = self.all.wrapping_add(holder);
        if is_old {
            self.old = self.old.wrapping_add(holder);
            self.has_old = true;
        }
    }

    pub const fn story(self) -> Story {
        even(if self.has_old { self.old } else { self.all })
    }

    /// Whether a wait that waits for these is to be reported.
    pub fn are_news(self, last: Reported, milliseconds: f64) -> bool {
        let is_same = |story| story == last.story;
        match last.story {
            0 => true,
            story if story % 2 == 1 => true,
            _ => self.has_old && !is_same(even(self.old)) && !is_same(even(self.all)) && milliseconds >= 2.0 * last.at,
        }
    }
}

const fn even(number: u64) -> Story {
    (number as u32 >> 2 & !1) | 2
}

/// What was reported of a wait last, and its milliseconds then.
#[derive(Clone, Copy, Default)]
pub struct Reported {
    pub story: Story,
    pub at: f64,
}

/// The stories that were reported, in the whole process.
#[derive(Default)]
pub struct Stories {
    /// The cycles that have been reported, by their numbers, each with when that was.
    reported: Mutex<FxHashMap<u64, Timestamp>>,
    covered: Mutex<Covered>,
}

impl Stories {
    /// Whether a cycle is reported for the first time. `all`: those that were there after `looked_at`.
    pub fn is_first(&self, cycle: u64, all: &FxHashSet<u64>, looked_at: Timestamp) -> bool {
        let reported = &mut *lock(&self.reported);
        reported.retain(|cycle, reported_at| all.contains(cycle) || *reported_at >= looked_at);
        let is_first = !reported.contains_key(&cycle);
        if is_first {
            reported.insert(cycle, now());
        }
        is_first
    }

    /// Runs `body` alone. `all`: the waits that were there after `looked_at`.
    pub fn covered<R>(&self, all: &FxHashSet<u64>, looked_at: Timestamp, body: impl FnOnce(&mut Covered) -> R) -> R {
        let covered = &mut *lock(&self.covered);
        covered.0.retain(|wait, (_, noted)| all.contains(wait) || *noted >= looked_at);
        body(covered)
    }
}

/// The waits of blocked threads that have been reported: by the hashes of their keys, the story, and since when.
#[derive(Default)]
pub struct Covered(FxHashMap<u64, (Story, Timestamp)>);

impl Covered {
    /// Returns what was reported of a wait, which began at `since`.
    pub fn reported(&self, wait: u64, since: Timestamp) -> Reported {
        self.0.get(&wait).map_or_else(Reported::default, |&(story, noted)| Reported {
            story,
            at: noted.duration_since(since).as_secs_f64() * 1e3,
        })
    }

    pub fn note(&mut self, wait: u64, story: Story) {
        self.0.insert(wait, (story, now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_reported_once_until_a_later_look_finds_it_gone() {
        let (stories, cycle, other) = (Stories::default(), 1, 2);
        let here = FxHashSet::from_iter([cycle, other]);
        let before = now();
        assert!(stories.is_first(cycle, &here, before));
        assert!(!stories.is_first(cycle, &here, now()));
        // A thread that had looked before the cycle was there forgets nothing.
        assert!(stories.is_first(other, &FxHashSet::from_iter([other]), before));
        assert!(!stories.is_first(cycle, &here, now()));
        assert!(!stories.is_first(other, &FxHashSet::from_iter([other]), now()));
        assert!(stories.is_first(cycle, &here, now()));
    }

    fn keepers(holders: &[(u64, bool)]) -> Keepers {
        let mut keepers = Keepers::default();
        for &(holder, is_old) in holders {
            keepers.add(16 * holder, is_old);
        }
        keepers
    }

    #[test]
    fn a_wait_is_reported_again_if_an_older_holder_or_no_cycle_keeps_it_waiting() {
        let nothing = Reported::default();
        let young = keepers(&[(1, false)]);
        assert!(young.are_news(nothing, 10.0));
        let reported = Reported { story: young.story(), at: 10.0 };
        // The same holder, now older; and others that come and go.
        assert!(!keepers(&[(1, true)]).are_news(reported, 99.0));
        assert!(!keepers(&[(2, false)]).are_news(reported, 99.0));
        assert!(keepers(&[(2, true)]).are_news(reported, 20.0));
        assert!(!keepers(&[(2, true)]).are_news(reported, 19.0));
        // Beside a reader that stays, readers come and go.
        let reported = Reported { story: keepers(&[(1, true), (2, false)]).story(), at: 10.0 };
        assert!(!keepers(&[(1, true), (3, false)]).are_news(reported, 99.0));
        assert!(keepers(&[(1, true), (3, true)]).are_news(reported, 99.0));
        // The cycle has gone.
        assert!(young.are_news(Reported { story: of_cycle(6), at: 10.0 }, 11.0));
    }

    #[test]
    fn a_wait_that_is_over_is_forgotten_unless_it_was_reported_meanwhile() {
        let (stories, wait, other) = (Stories::default(), u64::MAX, u64::MAX - 1);
        let none = FxHashSet::default();
        let before = now();
        stories.covered(&none, before, |covered| covered.note(wait, 4));
        stories.covered(&none, before, |covered| assert_eq!(covered.reported(wait, before).story, 4));
        let here = FxHashSet::from_iter([wait]);
        stories.covered(&here, now(), |covered| {
            assert_eq!((covered.reported(wait, before).story, covered.reported(other, before).story), (4, 0));
        });
        stories.covered(&none, now(), |covered| assert_eq!(covered.reported(wait, before).story, 0));
    }
}
