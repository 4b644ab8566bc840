//! The memory of a robust list, as every thread may read it: who holds a lock?
//!
//! Only the list's own thread writes, and JavaScript does so by plain writes. A reader gets a right answer all the
//! same, since the entry of a lock stays where it is unless entries move, and a register tells that they do.
//!
//! # What a reader may find between two writes
//! `lib/holding/robust-list.js` says why it writes in this order. *Behind* is the serial number behind the last entry.
//!
//! | state | moves | behind | leaving | the holds are |
//! |---|---|---|---|---|
//! | quiet | even | 0 | – | all entries |
//! | announced: about to be taken, or being released in line | even | set | – | all entries |
//! | moving: one and the last change places, to release it | odd | its number | – | all but the one with the number, or the last |
//! | moving: before its number is behind, or no longer | odd | 0 | – | all entries |
//! | freeing: the last entry's word | even | 0 | its word | all others |
//! | left: the word is free, and the entry gone | even | its number | its word, or – | all entries |

#![allow(unsafe_code, reason = "memory that JavaScript owns")]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::registers::{RegistersRef, from_number, to_number};
use crate::lock::Hold;
use crate::lock::word::amount_of;
use crate::queue::Location;

/// An entry: two JavaScript numbers.
///
/// If it is a lock, and its holder owes a notification, the hold is negative, and its amount is the address of the
/// notification's location, in words.
#[repr(C)]
pub struct Entry {
    address: AtomicU64,
    hold: AtomicU64,
}

impl Entry {
    pub fn set(&self, location: Location, hold: Hold) {
        self.address.store(to_number(location).to_bits(), Ordering::Relaxed);
        self.hold.store((hold.packed() as f64).to_bits(), Ordering::Relaxed);
    }

    fn location(&self) -> Option<Location> {
        from_number(f64::from_bits(self.address.load(Ordering::Relaxed)))
    }

    pub fn get(&self) -> Option<(Location, Hold)> {
        Some((self.location()?, Hold::from_packed(self.number().abs() as u64)))
    }

    fn number(&self) -> f64 {
        f64::from_bits(self.hold.load(Ordering::Relaxed))
    }

    /// Returns where the notification was given that the holder owes.
    pub fn owed(&self) -> Option<Location> {
        let words = amount_of(-self.number() as u64) as usize;
        (words > 0).then(|| Location::from_address(words * size_of::<u32>()))
    }

    pub fn copy(&self, other: &Self) {
        for (ours, theirs) in [(&self.address, &other.address), (&self.hold, &other.hold)] {
            ours.store(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

#[derive(Clone, Copy)]
pub struct Holds {
    pub registers: RegistersRef,
    /// The entries. As many serial numbers follow; all but [`Holds::ANNOUNCED`] and 0 come from `lib/`.
    start: NonNull<Entry>,
    capacity: usize,
}

/// What tells whether an entry is leaving a robust list: see the head.
struct Look {
    moves: u32,
    leaving: Option<Location>,
    len: usize,
    /// The serial number behind the last entry.
    behind: u32,
}

/// The states of the head.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ListState {
    Quiet,
    Announced,
    Moving(u32),
    MovingUnnumbered,
    Freeing(Location),
    Left,
}

impl Look {
    fn state(&self) -> ListState {
        match (self.moves.is_multiple_of(2), self.behind, self.leaving) {
            (true, 0, None) => ListState::Quiet,
            (true, _, None) => ListState::Announced,
            (true, 0, Some(word)) => ListState::Freeing(word),
            (true, _, Some(_)) => ListState::Left,
            (false, 0, _) => ListState::MovingUnnumbered,
            (false, number, _) => ListState::Moving(number),
        }
    }

    /// Whether a reading after the look `before` is right. Entries that were read must be where they were.
    fn confirms(&self, before: &Self) -> bool {
        let is_quiet = matches!(self.state(), ListState::Quiet | ListState::Announced);
        let stays = self.moves == before.moves && self.leaving == before.leaving;
        stays && (is_quiet || (self.len == before.len && self.behind == before.behind))
    }
}

/// An entry of a robust list, as another thread reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub location: Location,
    pub hold: Hold,
    /// Tells this hold from earlier and later ones of its thread, unless it is 0.
    pub serial: u32,
    /// The index that the entry had when it was read.
    pub index: usize,
}

impl Holds {
    /// How often a list that changes meanwhile is read at most.
    const MOST_READINGS: usize = 8;

    /// The serial number of native code's announcements, and of entries that JavaScript has not numbered yet.
    pub const ANNOUNCED: u32 = 0x7fff_ffff;

    /// Makes a table without memory.
    pub fn empty(registers: RegistersRef) -> Self {
        Self { registers, start: NonNull::dangling(), capacity: 0 }
    }

    /// Returns this table, moved to memory that has its entries already.
    ///
    /// # Safety
    /// At `start` are so many bytes, aligned to 8, in which others write by atomic operations only. They are kept as
    /// long as the result is used.
    #[must_use]
    pub unsafe fn moved_to(self, start: NonNull<std::ffi::c_void>, bytes: usize) -> Self {
        let capacity = bytes / (size_of::<Entry>() + size_of::<u32>());
        Self { start: start.cast(), capacity, ..self }
    }

    pub fn count(&self) -> usize {
        self.registers.held.load(Ordering::Acquire) as usize
    }

    /// Whether the thread is giving something back at `location`, or just has.
    pub fn is_releasing(&self, location: Location) -> bool {
        self.registers.releasing() == Some(location)
    }

    /// Returns the count of moves: odd while entries move.
    fn moves(&self) -> u32 {
        self.registers.moves.load(Ordering::Acquire)
    }

    pub fn entries(&self) -> &[Entry] {
        // SAFETY: `moved_to` demands memory of this size, which is kept and does not move; another thread reads it under
        // the lock of the registry, under which the memory is exchanged and the agent leaves.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.capacity) }
    }

    pub fn serial(&self, index: usize) -> Option<&AtomicU32> {
        // SAFETY: as for `entries`.
        let serials =
            unsafe { std::slice::from_raw_parts(self.start.add(self.capacity).cast().as_ptr(), self.capacity) };
        serials.get(index)
    }

    /// Returns the serial number of the entry or announcement at `index`; 0 if there is none.
    fn number(&self, index: usize) -> u32 {
        self.serial(index).map_or(0, |serial| serial.load(Ordering::Acquire))
    }

    /// Returns the index of the first of `len` entries for `location`.
    pub fn position(&self, len: usize, location: Location) -> Option<usize> {
        let wanted = to_number(location).to_bits();
        self.entries().iter().take(len).position(|entry| entry.address.load(Ordering::Relaxed) == wanted)
    }

    /// Lists the holds at some locations, except one that is being released.
    pub fn held(&self, concerns: impl Fn(Location) -> bool) -> Vec<Held> {
        let mut held = Vec::new();
        for _ in 0..Self::MOST_READINGS {
            let look = self.look();
            held = self.read(&look, &concerns);
            // All of the above is read before what follows.
            fence(Ordering::Acquire);
            if self.look().confirms(&look) && held.iter().all(|held| self.is_at(held, held.index)) {
                break;
            }
        }
        held
    }

    /// Returns which state of the head the list is in.
    pub fn state(&self) -> ListState {
        self.look().state()
    }

    fn look(&self) -> Look {
        let (moves, leaving, len) = (self.moves(), self.registers.leaving(), self.count());
        Look { moves, leaving, len, behind: self.number(len) }
    }

    /// Lists the thread's messages of a queue, by serial number.
    ///
    /// Nothing unless it blocks to put there, and changes nothing before it tries again. `queue`: the first word.
    pub fn used_by_putter(&self, queue: Location) -> Vec<u32> {
        let mut is_blocked = false;
        let mut serials = Vec::new();
        for index in 0..self.count().min(self.capacity) {
            match self.entries()[index].get() {
                Some((location, Hold::BlockedPutter(words))) => is_blocked |= location.words_before(words) == queue,
                Some((location, Hold::Lease(words))) if location.words_before(words) == queue => {
                    serials.push(self.number(index));
                }
                _ => {}
            }
        }
        if is_blocked { serials } else { Vec::new() }
    }

    /// Whether the thread holds the word, and is not just releasing it.
    pub fn holds(&self, location: Location) -> bool {
        !self.held(|held| held == location).is_empty()
    }

    /// Reads the entries, without the one being released.
    fn read(&self, look: &Look, concerns: impl Fn(Location) -> bool) -> Vec<Held> {
        let (len, entries, last) = (look.len, self.entries(), look.len.checked_sub(1));
        let left_out = match look.state() {
            ListState::Moving(number) => (0..len).find(|&index| self.number(index) == number).or(last),
            ListState::Freeing(word) => last.filter(|&last| entries.get(last).and_then(Entry::location) == Some(word)),
            ListState::Quiet | ListState::Announced | ListState::MovingUnnumbered | ListState::Left => None,
        };
        let held = entries.iter().take(len).enumerate().filter_map(|(index, entry)| {
            let location = entry.location().filter(|&location| concerns(location))?;
            let (_, hold) = entry.get().filter(|(_, hold)| hold.is_visible())?;
            (Some(index) != left_out).then(|| Held { location, hold, serial: self.hold_number(index), index })
        });
        held.collect()
    }

    /// Returns the serial number of the hold whose entry is at `index`; 0 if JavaScript has not numbered it yet.
    fn hold_number(&self, index: usize) -> u32 {
        match self.number(index) {
            Self::ANNOUNCED => 0,
            number => number,
        }
    }

    fn is_at(&self, held: &Held, index: usize) -> bool {
        index < self.count()
            && self.entries().get(index).and_then(Entry::location) == Some(held.location)
            && self.hold_number(index) == held.serial
    }

    /// Whether the thread holds the lock, tries to, or just released it.
    ///
    /// From the moment at which the thread is about to take the lock, until it has released it, the list or the
    /// registers mention it: by an entry or an announcement, which stay at their index unless entries move, or as the
    /// lock that is being released. So it is overlooked only if entries move meanwhile.
    pub fn mentions(&self, location: Location) -> bool {
        for _ in 0..Self::MOST_READINGS {
            let (moves, len) = (self.moves(), self.count());
            let index = self.position(len + 1, location);
            // The word is freed before the entry goes, so another thread may have it already.
            if self.is_releasing(location) || index.is_some_and(|index| index < len || self.number(index) != 0) {
                return true;
            }
            // All of the above is read before what follows.
            fence(Ordering::Acquire);
            if moves.is_multiple_of(2) && self.moves() == moves {
                return false;
            }
        }
        true
    }
}
