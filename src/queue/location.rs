//! The address of a word of shared memory, and comparing the word with what a wait expects.

#![allow(unsafe_code, reason = "reading memory that JavaScript owns")]

use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

/// Bytes of a cache line.
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

    /// The location of a word of this process's own, at an address that is a multiple of 4. It differs from that of every word of
    /// memory that JavaScript has, which may get the same address later.
    pub(crate) const fn of_process(address: usize) -> Self {
        Self(address | 1)
    }

    /// Whether this is the location of a word of this process's own.
    pub(crate) const fn is_of_process(self) -> bool {
        !self.0.is_multiple_of(4)
    }

    /// The number by which JavaScript knows this location: for a word of JavaScript's memory, its address.
    pub const fn address(self) -> usize {
        self.0
    }

    /// The address of the word.
    pub(crate) const fn word_address(self) -> usize {
        self.0 & !3
    }

    /// A hash by which the words of one cache line are neighbours in a hash table.
    pub(crate) fn hash(self) -> u64 {
        let (line, word) = ((self.0 / CACHE_LINE) as u64, (self.0 % CACHE_LINE / 4) as u64);
        // The middle bits of a product are well mixed. The table takes an index from the lowest bits, and the byte that it
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
