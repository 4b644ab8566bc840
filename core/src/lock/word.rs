//! Words that exclude: their values, and how they change.

use super::{Hold, Mode, Request};
use crate::sync::{AtomicI32, Ordering};

/// The word of a lock that is free.
pub const UNLOCKED: i32 = 0;
/// The word of a lock that is held.
pub const LOCKED: i32 = 1;
/// The word of a read-write lock that a writer holds.
pub const WRITING: i32 = -1;

/// A word of a lock, read-write lock or semaphore. Implemented by shared memory, and by loom's atomics in models.
pub trait Word {
    /// Reads the word, `SeqCst`.
    fn load(&self) -> i32;
    /// Writes `new` if the word holds `current`, `SeqCst`. Returns whether it wrote.
    fn compare_exchange(&self, current: i32, new: i32) -> bool;

    // What follows differs for a word that several processes share.

    /// Whether it would grant the request now.
    fn grants(&self, request: Request) -> bool {
        request.taken_from(self.load()).is_some()
    }

    /// Takes the request. Returns whether the word granted it.
    fn take(&self, request: Request) -> bool {
        change(self, |current| request.taken_from(current))
    }

    /// Gives the hold back.
    fn give_back(&self, hold: Hold) {
        change(self, |current| Some(hold.given_back_to(current)));
    }

    /// Whether it is to be freed, and not handed over: another process has waited for long enough.
    fn is_due_elsewhere(&self) -> bool {
        false
    }

    /// Whether a process is known to have it. When that gives it back, it tells the others.
    fn has_known_holder(&self) -> bool {
        false
    }

    /// Notes a death for the next exclusive holder in any process. Returns false if the line does so.
    fn note_death(&self) -> bool {
        false
    }

    /// Returns whether there was such a note; an exclusive holder removes it.
    fn take_note_of_death(&self, _: Mode) -> bool {
        false
    }
}

impl Word for AtomicI32 {
    fn load(&self) -> i32 {
        self.load(Ordering::SeqCst)
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        self.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// Replaces the word's value by `next` of it, unless that is `None`. Returns whether it wrote.
pub(super) fn change(word: &(impl Word + ?Sized), next: impl Fn(i32) -> Option<i32>) -> bool {
    loop {
        let current = word.load();
        match next(current) {
            None => return false,
            Some(next) if word.compare_exchange(current, next) => return true,
            Some(_) => {}
        }
    }
}
