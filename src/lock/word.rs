//! A word that threads exclude each other by: reading it, and changing it by compare-and-exchange.

#![allow(unsafe_code, reason = "accessing memory that JavaScript owns")]

use std::sync::atomic::AtomicI32;

use crate::queue::location::Location;
use crate::sync::{self, Ordering};

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

impl<W: Word> Word for &W {
    fn load(&self) -> i32 {
        (**self).load()
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        (**self).compare_exchange(current, new)
    }
}

impl Word for sync::AtomicI32 {
    fn load(&self) -> i32 {
        self.load(Ordering::SeqCst)
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        self.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// The `Int32Array` element at `location`.
///
/// # Safety
/// `location` must be that of four aligned bytes of shared memory that stay allocated as long as the result is used, and that are only
/// written atomically or by JavaScript.
pub unsafe fn shared_word<'a>(location: Location) -> &'a AtomicI32 {
    // SAFETY: as the caller promises (invariant 8).
    unsafe { AtomicI32::from_ptr(std::ptr::with_exposed_provenance_mut(location.word_address())) }
}
