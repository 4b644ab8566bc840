//! A word of shared memory: its address, and the one place where it is read.

#![allow(unsafe_code, reason = "reading memory that JavaScript owns; nothing else in the core needs it")]

use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

/// Bytes of a cache line, as far as it matters where words are neighbours.
pub(crate) const CACHE_LINE: usize = 64;

/// The address of a word of shared memory: what waiter lists are keyed by (the specification's pair of a data block and
/// a byte index). The same in every thread of the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location(usize);

impl Location {
    /// The location at `address`.
    pub const fn from_address(address: usize) -> Self {
        Self(address)
    }

    /// The address.
    pub const fn address(self) -> usize {
        self.0
    }

    /// For tables by location: the words of one cache line have neighbouring places in the table.
    pub(crate) fn hash(self) -> u64 {
        let (line, word) = ((self.0 / CACHE_LINE) as u64, (self.0 % CACHE_LINE / 4) as u64);
        // The middle bits of a product are the well-mixed ones. The table takes a place from the lowest bits, and what it
        // compares first from the highest.
        let mixed = line.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
        mixed ^ word ^ (word << 57)
    }
}

/// What the word is expected to hold: an element of an `Int32Array` or of a `BigInt64Array`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// Four bytes.
    Int32(i32),
    /// Eight bytes.
    BigInt64(i64),
}

impl Expected {
    /// Whether the word at `location` holds this value now. Reads atomically, `SeqCst` (invariant 9).
    ///
    /// # Safety
    /// `location` must be the address of an element of that size in memory which stays allocated during the call, is
    /// aligned to the element's size, and is only written atomically or by JavaScript.
    pub unsafe fn is_at(self, location: Location) -> bool {
        match self {
            // SAFETY: the caller promises a live, aligned word of this size (invariant 8); JavaScript's accesses are
            // those of its own memory model, under which concurrent access is no undefined behaviour.
            Self::Int32(value) => unsafe {
                AtomicI32::from_ptr(std::ptr::with_exposed_provenance_mut(location.0)).load(Ordering::SeqCst) == value
            },
            // SAFETY: as above, for eight bytes.
            Self::BigInt64(value) => unsafe {
                AtomicI64::from_ptr(std::ptr::with_exposed_provenance_mut(location.0)).load(Ordering::SeqCst) == value
            },
        }
    }
}

/// A word by which threads exclude each other: `0` free, anything else as its [`crate::lock::line::Request`]s define.
///
/// The store acquires it on behalf of those in its line. Implemented by shared memory, and by loom's atomics in models.
pub trait Word {
    /// What the word holds, read `SeqCst`.
    fn load(&self) -> i32;
    /// Stores `value`, `SeqCst`.
    fn store(&self, value: i32);
    /// Stores `new` if the word holds `current`, `SeqCst`. Whether it did.
    fn compare_exchange(&self, current: i32, new: i32) -> bool;
}

impl<W: Word> Word for &W {
    fn load(&self) -> i32 {
        (**self).load()
    }

    fn store(&self, value: i32) {
        (**self).store(value);
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        (**self).compare_exchange(current, new)
    }
}

/// A word of memory that is shared with JavaScript.
#[derive(Clone, Copy, Debug)]
pub struct SharedWord(Location);

impl SharedWord {
    /// The `Int32Array` element at `location`.
    ///
    /// # Safety
    /// `location` must be the address of four aligned bytes of shared memory that stay allocated as long as the value is
    /// used, and that are only written atomically or by JavaScript.
    pub const unsafe fn at(location: Location) -> Self {
        Self(location)
    }

    fn atomic(&self) -> &AtomicI32 {
        // SAFETY: `at` demands a live, aligned word (invariant 8).
        unsafe { AtomicI32::from_ptr(std::ptr::with_exposed_provenance_mut(self.0.address())) }
    }
}

impl Word for SharedWord {
    fn load(&self) -> i32 {
        self.atomic().load(Ordering::SeqCst)
    }

    fn store(&self, value: i32) {
        self.atomic().store(value, Ordering::SeqCst);
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        self.atomic().compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}
