//! Reports that have been made: of a cycle one, and of a wait one for each key: its cycle, or its longest holder.
//!
//! A wait is asked about when it is due, and then whenever it has lasted twice as long. So holders that come and go make
//! few reports; and none unless the longest holder is older than the period.
//!
//! JavaScript has the keys of promises. Here are the cycles, and the waits of blocked threads that were reported, or
//! counted in another thread's report: **one cycle, one report**, whichever of its threads finds it first; and **one
//! report for the threads that block at one place for one lock**. A thread looks at all holds and waits, and then, in
//! one critical section, enters its own, and forgets the reports made before it looked whose subjects were gone.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{LazyLock, Mutex};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::clock::{Timestamp, now};
use crate::sync::lock;

/// What a wait was reported with; 0: it was not. It has 30 bits, which V8 keeps without a box.
pub type Key = u32;

pub fn hash(value: impl Hash) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.hash_one(value)
}

/// Returns the key for a cycle or a holder, by its hash.
pub const fn key_of(hash: u64) -> Key {
    hash as u32 >> 2 | 1
}

/// The cycles and blocked waits that were reported, in the whole process.
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
    pub fn get(&self, hash: u64) -> Key {
        self.0.get(&hash).map_or(0, |&(key, _)| key)
    }

    /// Notes what is reported. Returns whether that is new.
    pub fn note(&mut self, hash: u64, key: Key) -> bool {
        let is_new = self.get(hash) != key;
        self.0.insert(hash, (key, now()));
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_remembered_until_a_later_look_finds_its_subject_gone() {
        let (reported, subject, other) = (AlreadyReported::default(), 1, 2);
        let here = FxHashSet::from_iter([subject, other]);
        let before = now();
        assert!(reported.update(&here, before, |keys| keys.note(subject, 7)));
        assert!(!reported.update(&here, now(), |keys| keys.note(subject, 7)));
        assert!(reported.update(&here, now(), |keys| keys.note(subject, 9)));
        // A thread that had looked before the subject was there forgets nothing.
        assert!(reported.update(&FxHashSet::from_iter([other]), before, |keys| keys.note(other, 7)));
        assert_eq!(reported.update(&here, now(), |keys| [keys.get(subject), keys.get(other)]), [9, 7]);
        assert_eq!(reported.update(&FxHashSet::from_iter([other]), now(), |keys| keys.get(subject)), 0);
        assert!(reported.update(&here, now(), |keys| keys.note(subject, 9)));
    }
}
