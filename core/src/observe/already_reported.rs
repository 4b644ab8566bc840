//! Reports that have been made: of a cycle one, and of a wait one for each key: its cycle, or its longest holder.
//!
//! A wait is asked about when it is due, and then whenever it has lasted twice as long. So holders that come and go make
//! few reports; and none unless the longest holder is older than the period.
//!
//! **One cycle, one report**, whichever of its threads finds it first; and **one report for the threads that block at
//! one place for one lock**. A thread looks at all holds and waits, and then, in one critical section, enters its own,
//! and forgets the reports made before it looked whose subjects were gone.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{LazyLock, Mutex};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::clock::{Timestamp, now};
use crate::sync::lock;

/// What a wait was reported with: its cycle, or its longest holder.
pub type Key = u64;

pub fn hash(value: impl Hash) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(value)
}

/// The cycles and waits that were reported, in the whole process.
#[derive(Default)]
pub struct AlreadyReported(Mutex<Keys>);

/// By the hashes of cycles and waits, the keys; and since when.
#[derive(Default)]
pub struct Keys(FxHashMap<u64, (Key, Timestamp)>);

impl AlreadyReported {
    /// Runs `body` alone. `all`: the hashes of all that was there after `looked_at`.
    pub fn update<R>(&self, all: &FxHashSet<u64>, looked_at: Timestamp, body: impl FnOnce(&mut Keys) -> R) -> R {
        let keys = &mut *lock(&self.0);
        keys.0.retain(|hash, (_, noted)| all.contains(hash) || *noted >= looked_at);
        body(keys)
    }
}

impl Keys {
    /// Returns the key of the last report, and when that was made.
    pub fn get(&self, hash: u64) -> Option<(Key, Timestamp)> {
        self.0.get(&hash).copied()
    }

    /// Notes what is reported. The same again is as old as before.
    pub fn note(&mut self, hash: u64, key: Key) {
        if self.get(hash).is_none_or(|(known, _)| known != key) {
            self.0.insert(hash, (key, now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_remembered_until_a_later_look_finds_its_subject_gone() {
        let (reported, subject, other) = (AlreadyReported::default(), 1, 2);
        let here = FxHashSet::from_iter([subject, other]);
        let only_other = FxHashSet::from_iter([other]);
        let before = now();
        reported.update(&here, before, |keys| keys.note(subject, 7));
        let key = |all, looked_at| reported.update(all, looked_at, |keys| keys.get(subject).map(|(key, _)| key));
        assert_eq!(key(&here, now()), Some(7));
        // A thread that had looked before the subject was there forgets nothing.
        assert_eq!(key(&only_other, before), Some(7));
        assert_eq!(key(&only_other, now()), None);
    }
}
