//! The address of a word of shared memory.

#![allow(unsafe_code, reason = "accessing memory that JavaScript owns")]

pub(crate) const CACHE_LINE: usize = 64;

/// The address of a word of shared memory: the key of waiter lists (the specification's pair of a data block and a byte
/// index). The same in every thread of the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location(usize);

impl Location {
    pub const fn from_address(address: usize) -> Self {
        Self(address)
    }

    /// Returns the location of a word of this process's own. Its address is a multiple of 4. It differs from that of
    /// every word of memory that JavaScript has, which may get the same address later.
    pub(crate) const fn of_process(address: usize) -> Self {
        Self(address | 1)
    }

    #[must_use]
    pub const fn words_after(self, words: u32) -> Self {
        Self(self.0 + 4 * words as usize)
    }

    #[must_use]
    pub const fn words_before(self, words: u32) -> Self {
        Self(self.0 - 4 * words as usize)
    }

    /// Whether this is the location of a word of this process's own.
    pub const fn is_of_process(self) -> bool {
        !self.0.is_multiple_of(4)
    }

    /// Returns the number by which JavaScript knows this location: for a word of JavaScript's memory, its address.
    pub const fn address(self) -> usize {
        self.0
    }

    /// Hashes so that a cache line's words are neighbours in a table.
    pub(crate) fn hash(self) -> u64 {
        let (line, word) = ((self.0 / CACHE_LINE) as u64, (self.0 % CACHE_LINE / 4) as u64);
        // The middle bits of a product are well mixed. The table takes an index from the lowest bits, and the byte that
        // it compares first from the highest.
        let mixed = line.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
        mixed ^ word ^ (word << 57)
    }

    /// Returns the word as a `T`.
    ///
    /// # Safety
    /// `T` is an atomic number. The location must be that of so many aligned bytes of shared memory that stay allocated
    /// as long as the result is used, and are only written atomically, or by JavaScript under its own memory model.
    pub unsafe fn word<'a, T>(self) -> &'a T {
        // SAFETY: as the caller promises (invariants 8 and 9).
        unsafe { &*std::ptr::with_exposed_provenance(self.0 & !3) }
    }
}
