//! Notes on an agent's waits and holds: other threads read them to find out who waits for what.
//!
//! Where and when a hold was taken is noted if stalls are reported. JavaScript tells of each, with the call's stack. A
//! hold is known by the serial number of its entry in the robust list, which stays the same while entries move.
//! JavaScript begins a hold before it takes the lock, and ends it before it releases the lock; so an entry that other
//! threads find in the list is known here. A grant that has no entry yet has its call in the note on the wait.
//!
//! Also of which holds it is known what their callbacks claim: see `lib/holding/tasks.js`.

use std::sync::{Arc, Mutex};

use rustc_hash::{FxHashMap, FxHashSet};

use super::stacks::StackId;
use crate::clock::{Timestamp, now};
use crate::lock::{Request, shrink};
use crate::queue::Location;
use crate::sync::lock;

/// A notification that the program awaits itself, by `Atomics.wait` or `waitAsync`; see [`Noted::wait_kind`].
pub const PLAIN: u32 = 0;
/// A notification that a `Condition` awaits.
pub const CONDITION: u32 = 1;

/// The lowest bits of a wait kind are the kind of thing that notifies; the others its word's index in the thing.
pub const WAIT_KIND_BITS: u32 = 4;

/// A note on a sleeping thread's wait, or on a promise. Plain `waitAsync` has none, unless stalls are reported.
#[derive(Clone, Copy)]
pub struct Noted {
    pub location: Location,
    pub request: Option<Request>,
    /// Where a notification goes if the agent ends before it makes use of it. It is the notification that this promise
    /// may receive, or the one after which this claim takes its lock again.
    pub relay: Option<Location>,
    /// The wait kind of a notification: its number in `lib/waiting/errors.js`.
    pub wait_kind: u32,
    /// The stack of the call that waits, if stalls are reported.
    pub call: StackId,
    pub since: Timestamp,
}

impl Noted {
    /// Makes the notes of a wait for a notification, which begins now.
    pub fn notification(location: Location, wait_kind: u32, relay: Option<Location>, call: StackId) -> Self {
        Self { location, request: None, relay, wait_kind, call, since: now() }
    }

    /// Returns the word and the request of a claim.
    pub fn claim(self) -> Option<(Location, Request)> {
        Some((self.location, self.request?))
    }
}

/// Serial numbers of the holds in whose callbacks a claim was made.
pub type Within = Box<[u32]>;

/// What is known of a hold, if stalls are reported.
#[derive(Clone, Copy)]
pub struct Taken {
    pub call: StackId,
    pub since: Timestamp,
    /// Whether the token that stands for it has been collected.
    pub is_orphaned: bool,
    /// Whether a callback runs with it of which the claims are known.
    pub in_task: bool,
}

#[derive(Default)]
struct Notes {
    by_slot: FxHashMap<u32, Noted>,
    /// Of few: of claims that were made in callbacks.
    within: FxHashMap<u32, Within>,
    sleep: Option<Noted>,
    taken: FxHashMap<u32, Taken>,
    /// The holds whose callbacks run. A wait of a `Condition` ends a hold, but not its callback.
    tasks: FxHashSet<u32>,
}

/// The notes on an agent's waits and holds. Any thread may read them.
#[derive(Clone, Default)]
pub struct SharedNotes(Arc<Mutex<Notes>>);

impl SharedNotes {
    /// Adds the note on the wait in a slot. `within`: the holds in whose callbacks it was made. Returns how many there are.
    pub fn add(&self, slot: u32, noted: Noted, within: Option<Within>) -> usize {
        let all = &mut *lock(&self.0);
        all.by_slot.insert(slot, noted);
        if let Some(within) = within {
            all.within.insert(slot, within);
        }
        all.by_slot.len()
    }

    /// Removes the note on the wait in a slot. Also returns how many are left.
    pub fn remove(&self, slot: u32) -> (Option<Noted>, usize) {
        let all = &mut *lock(&self.0);
        all.within.remove(&slot);
        let noted = all.by_slot.remove(&slot);
        shrink(&mut all.within);
        shrink(&mut all.by_slot);
        (noted, all.by_slot.len())
    }

    pub fn of_slot(&self, slot: u32) -> Option<Noted> {
        lock(&self.0).by_slot.get(&slot).copied()
    }

    /// Returns the note on a slot's wait at the location. Also the holds around it.
    pub fn get(&self, slot: u32, location: Location) -> Option<(Noted, Within)> {
        let all = lock(&self.0);
        let noted = all.by_slot.get(&slot).filter(|noted| noted.location == location)?;
        Some((*noted, all.within.get(&slot).cloned().unwrap_or_default()))
    }

    /// Returns the note on the thread's sleep. It counts as sleeping until its robust list has its grant.
    pub fn sleep(&self) -> Option<Noted> {
        lock(&self.0).sleep
    }

    /// Notes the thread's next wait, where only JavaScript knows it; `None` when the thread goes on.
    pub fn set_sleep(&self, sleep: Option<Noted>) {
        lock(&self.0).sleep = sleep;
    }

    /// Notes that the thread is about to sleep. Earlier notes stay.
    pub fn begin_sleep(&self, sleep: Noted) {
        lock(&self.0).sleep.get_or_insert(sleep);
    }

    pub fn taken(&self, serial: u32) -> Option<Taken> {
        let all = lock(&self.0);
        Some(Taken { in_task: all.tasks.contains(&serial), ..*all.taken.get(&serial)? })
    }

    pub fn begin_hold(&self, serial: u32, call: StackId) {
        lock(&self.0).taken.insert(serial, Taken { call, since: now(), is_orphaned: false, in_task: false });
    }

    pub fn end_hold(&self, serial: u32) {
        let taken = &mut lock(&self.0).taken;
        taken.remove(&serial);
        shrink(taken);
    }

    pub fn orphan_hold(&self, serial: u32) {
        if let Some(taken) = lock(&self.0).taken.get_mut(&serial) {
            taken.is_orphaned = true;
        }
    }

    /// Notes whether a callback runs with the hold.
    pub fn note_task(&self, serial: u32, runs: bool) {
        let tasks = &mut lock(&self.0).tasks;
        _ = if runs { tasks.insert(serial) } else { tasks.remove(&serial) };
        if tasks.is_empty() {
            // Gives back the memory: there may have been many.
            *tasks = FxHashSet::default();
        }
    }
}
