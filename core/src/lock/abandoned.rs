//! Locks whose holders died: the next holder sees the death.
//!
//! A lock that nobody waits for is remembered by its location. Whether any is, at a location or at others that share
//! its counter, is read by JavaScript before it asks. Names are requested by native calls, and are not counted.

use std::ops::Range;

use super::bucket::Section;
use super::{Hold, Mode, WaiterListStore, Word};
use crate::queue::{Location, WaitResult};

impl Section<'_> {
    /// Returns whether the taken word at `location` had been abandoned. An exclusive holder can repair the state that
    /// was left half done, so the note of the death ends with it; all readers learn of the death.
    pub(super) fn take_note_of_death(&mut self, location: Location, hold: Hold, word: &(impl Word + ?Sized)) -> bool {
        let Some(mode) = hold.mode() else { return false };
        word.take_note_of_death(mode) || self.take_local_note(location, mode)
    }

    /// Apart from the rest, which is inlined so: a free lock takes 14 instructions less.
    fn take_local_note(&mut self, location: Location, mode: Mode) -> bool {
        match mode {
            Mode::Exclusive => {
                let was_abandoned = self.lists.policy.abandoned.remove(&location);
                if was_abandoned && !location.is_of_process() {
                    self.counters.count(location, -1);
                }
                was_abandoned
            }
            Mode::Shared => self.lists.policy.abandoned.contains(&location),
        }
    }

    fn abandon(&mut self, location: Location, hold: Hold, word: &(impl Word + ?Sized)) {
        if self.was_stolen(location, hold) {
            return;
        }
        if hold.is_of_lock() {
            self.lists.policy.end_grant(location);
            if let Some((first, ..)) = self.notify_up_to_first_claim(location)
                && self.is_ready(location, first)
            {
                // The dead thread may have ended before it read the note of an earlier death.
                self.take_note_of_death(location, hold, word);
                self.grant(first, location, WaitResult::AcquiredFromDead);
                return;
            }
        }
        if hold.is_exclusive() {
            self.note_death(location, word);
        }
        // After the count: a thread that takes the word from now on reads the counter.
        word.give_back(hold);
        self.word_changed(location, word);
    }

    pub(super) fn return_unused(
        &mut self,
        location: Location,
        hold: Hold,
        result: WaitResult,
        word: &(impl Word + ?Sized),
    ) {
        if result == WaitResult::AcquiredFromDead {
            self.abandon(location, hold, word);
        } else {
            // Only threads that go on release locks of which a blocked one may get the processor.
            let _ = self.release(location, hold, word);
        }
    }

    /// Lists the abandoned locks of this bucket at these addresses of JavaScript's.
    fn abandoned_in(&self, addresses: &Range<usize>) -> impl Iterator<Item = Location> {
        let locations = Location::from_address(addresses.start)..Location::from_address(addresses.end);
        self.lists.policy.abandoned.range(locations).copied().filter(|location| !location.is_of_process())
    }

    /// Notes a death: the next exclusive holder of the word sees it.
    pub(super) fn note_death(&mut self, location: Location, word: &(impl Word + ?Sized)) {
        if !word.note_death() && self.lists.policy.abandoned.insert(location) && !location.is_of_process() {
            self.counters.count(location, 1);
        }
    }
}

impl WaiterListStore {
    /// Notes a death for the next exclusive holder. The calling thread holds the word.
    pub fn note_death(&self, location: Location, word: &(impl Word + ?Sized)) {
        self.critical_section_at(location, |section| section.note_death(location, word));
    }

    /// Returns a grant, made with `result`: the next holder sees a death if this one did, or is dead itself.
    pub fn return_unused(&self, location: Location, hold: Hold, result: WaitResult, word: &(impl Word + ?Sized)) {
        self.critical_section_at(location, |section| section.return_unused(location, hold, result, word));
    }

    /// Returns whether the lock, taken without a native call, had been abandoned. The note of that ends.
    pub fn take_note_of_death(&self, location: Location, hold: Hold, word: &(impl Word + ?Sized)) -> bool {
        self.critical_section_at(location, |section| section.take_note_of_death(location, hold, word))
    }

    /// Notes whether the exclusive holder leaves a death to the next one: it has not repaired the state, or has. Of a
    /// name, one that steals it sees it, too. Returns false if the name was stolen before.
    pub fn set_saw_death(&self, location: Location, hold: Hold, word: &(impl Word + ?Sized), saw: bool) -> bool {
        self.critical_section_at(location, |section| match hold.id() {
            Some(id) => section.lists.policy.named.get_mut(&(location, id)).map(|each| *each = saw).is_some(),
            None => {
                !saw && {
                    section.take_note_of_death(location, hold, word);
                    true
                }
            }
        })
    }

    /// Whether any lock at these addresses is abandoned.
    pub fn any_abandoned_in(&self, addresses: &Range<usize>) -> bool {
        self.counters.any()
            && self
                .buckets_of(addresses)
                .any(|index| self.critical_section(index, |section| section.abandoned_in(addresses).next().is_some()))
    }

    /// Forgets the abandoned locks at these addresses: their memory is gone.
    pub fn forget_abandoned(&self, addresses: &Range<usize>) {
        for index in self.buckets_of(addresses).filter(|_| self.counters.any()) {
            self.critical_section(index, |section| {
                for location in section.abandoned_in(addresses).collect::<Vec<_>>() {
                    section.lists.policy.abandoned.remove(&location);
                    section.counters.count(location, -1);
                }
            });
        }
    }
}
