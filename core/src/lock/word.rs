//! Words that exclude: their values, and how they change.

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
pub(super) fn change(word: &impl Word, next: impl Fn(i32) -> Option<i32>) -> bool {
    loop {
        let current = word.load();
        match next(current) {
            None => return false,
            Some(next) if word.compare_exchange(current, next) => return true,
            Some(_) => {}
        }
    }
}
