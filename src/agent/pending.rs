//! An agent's pending asynchronous waits, by slot; their hold on the loop.
//!
//! The table is used on the agent's thread only, and may be out of date: the store recognises the ticket of a wait that
//! is settled. Other threads read the notes on waits for locks, to find out who waits for what.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::observe::StackId;
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::lock::Request;
use waitasync_core::queue::{Location, Ticket};
use waitasync_core::sync::lock;

/// A pending wait. There may be a million of them.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) ticket: Ticket,
    timed: bool,
    refed: bool,
}

const _: () = assert!(size_of::<Option<Wait>>() == 8);

/// Tables up to this length keep their memory.
const RETAINED: usize = 4096;

/// A notification that the program awaits itself, by `Atomics.wait` or `waitAsync`; see [`Noted::purpose`].
pub(crate) const PLAIN: u32 = 0;
/// A notification that a `Condition` awaits.
pub(crate) const CONDITION: u32 = 1;

/// The lowest bits of a purpose are the kind of thing that notifies; the others its word's index in the thing.
pub(crate) const PURPOSE_BITS: u32 = 3;

/// A note on a sleeping thread's wait, or on a promise. Plain `waitAsync` has none, unless stalls are reported.
#[derive(Clone, Copy)]
pub(crate) struct Noted {
    pub(crate) location: Location,
    /// Its request, if it is a claim.
    pub(crate) request: Option<Request>,
    /// Where a notification goes if the agent ends before it makes use of it. It is the notification that this promise
    /// may receive, or the one after which this claim takes its lock again.
    pub(crate) relay: Option<Location>,
    /// The purpose of a notification: its number in `lib/waiting/kinds.js`.
    pub(crate) purpose: u32,
    /// The stack of the call that waits, if stalls are reported.
    pub(crate) call: StackId,
    /// When the wait began.
    pub(crate) since: Timestamp,
}

impl Noted {
    /// Makes the notes of a wait for a notification, which begins now.
    pub(crate) fn notification(location: Location, purpose: u32, relay: Option<Location>, call: StackId) -> Self {
        Self { location, request: None, relay, purpose, call, since: now() }
    }
}

/// Serial numbers of the holds in whose callbacks a claim was made.
pub(crate) type Within = Box<[u32]>;

#[derive(Default)]
struct Notes {
    by_slot: FxHashMap<u32, Noted>,
    /// Of few: see [`Pending::set_within`].
    within: FxHashMap<u32, Within>,
    sleep: Option<Noted>,
}

/// The notes on an agent's waits. Any thread may read them.
#[derive(Clone, Default)]
pub(crate) struct SharedNotes(Arc<Mutex<Notes>>);

impl SharedNotes {
    pub(crate) fn get(&self, slot: u32, location: Location) -> Option<(Noted, Within)> {
        let all = lock(&self.0);
        let noted = all.by_slot.get(&slot).filter(|noted| noted.location == location)?;
        Some((*noted, all.within.get(&slot).cloned().unwrap_or_default()))
    }

    /// Returns the note on the thread's sleep. It counts as sleeping until its robust list has its grant.
    pub(crate) fn sleep(&self) -> Option<Noted> {
        lock(&self.0).sleep
    }

    /// Notes the thread's next wait, where only JavaScript knows it; `None` when the thread goes on.
    pub(crate) fn set_sleep(&self, sleep: Option<Noted>) {
        lock(&self.0).sleep = sleep;
    }

    /// Notes that the thread is about to sleep. Earlier notes stay.
    pub(crate) fn begin_sleep(&self, sleep: Noted) {
        lock(&self.0).sleep.get_or_insert(sleep);
    }
}

#[derive(Default)]
pub(crate) struct Pending {
    waits: RefCell<Vec<Option<Wait>>>,
    pub(crate) notes: SharedNotes,
    /// How many notes there are. Most agents have none at all: then a wait's end costs nothing more.
    noted: Cell<usize>,
    /// See [`Self::set_within`].
    within: Cell<Option<Within>>,
    /// How many of them, with and without a timeout, want the event loop to be kept alive.
    timed: Cell<usize>,
    untimed: Cell<usize>,
}

impl Pending {
    fn count(&self, wait: Wait, change: isize) {
        let count = if wait.timed { &self.timed } else { &self.untimed };
        count.set(count.get().wrapping_add_signed(change));
    }

    /// Notes the wait in a slot. Called before it is enqueued, so that other threads know it at every moment.
    pub(crate) fn note(&self, slot: u32, noted: Noted) {
        let all = &mut *lock(&self.notes.0);
        all.by_slot.insert(slot, noted);
        if let Some(within) = self.within.take() {
            all.within.insert(slot, within);
        }
        self.noted.set(all.by_slot.len());
    }

    /// Notes the holds in whose callbacks the next claim is made.
    pub(crate) fn set_within(&self, holds: Vec<u32>) {
        self.within.set(Some(holds.into()).filter(|holds: &Within| !holds.is_empty()));
    }

    /// Adds the wait in this slot, which has been enqueued. `claim`: the facts to note of it, unless they are noted.
    pub(crate) fn insert(&self, slot: u32, ticket: Ticket, timed: bool, claim: Option<Noted>) {
        let wait = Wait { ticket, timed, refed: true };
        let index = slot as usize;
        let waits = &mut *self.waits.borrow_mut();
        if waits.len() <= index {
            waits.resize(index + 1, None);
        }
        waits[index] = Some(wait);
        if let Some(claim) = claim {
            self.note(slot, claim);
        }
        self.count(wait, 1);
    }

    /// Removes the wait in this slot, which is over.
    pub(crate) fn remove(&self, slot: u32) -> Option<Noted> {
        let wait = self.waits.borrow_mut().get_mut(slot as usize).and_then(Option::take);
        if let Some(wait) = wait.filter(|wait| wait.refed) {
            self.count(wait, -1);
        }
        if self.noted.get() == 0 {
            return None;
        }
        let all = &mut *lock(&self.notes.0);
        all.within.remove(&slot);
        let noted = all.by_slot.remove(&slot);
        self.noted.set(all.by_slot.len());
        noted
    }

    /// Whether there are notes. Each claim has one.
    pub(crate) fn has_notes(&self) -> bool {
        self.noted.get() > 0
    }

    pub(crate) fn ticket(&self, slot: u32) -> Option<Ticket> {
        Some(self.waits.borrow().get(slot as usize)?.as_ref()?.ticket)
    }

    pub(crate) fn noted(&self, slot: u32) -> Option<Noted> {
        lock(&self.notes.0).by_slot.get(&slot).copied()
    }

    /// Sets whether the wait in this slot keeps the event loop alive.
    pub(crate) fn set_refed(&self, slot: u32, refed: bool) {
        if let Some(Some(wait)) = self.waits.borrow_mut().get_mut(slot as usize)
            && wait.refed != refed
        {
            wait.refed = refed;
            self.count(*wait, if refed { 1 } else { -1 });
        }
    }

    /// Whether a pending wait keeps the event loop alive. Without a timeout, only another thread can settle it.
    pub(crate) fn holds_loop(&self, other_threads: impl FnOnce() -> bool) -> bool {
        self.timed.get() > 0 || (self.untimed.get() > 0 && other_threads())
    }

    /// Frees the spare memory of long tables. Called when waits have been removed.
    pub(crate) fn shrink(&self) {
        // Then only unref'd waits are pending.
        if self.timed.get() + self.untimed.get() == 0 {
            let mut waits = self.waits.borrow_mut();
            if waits.capacity() > RETAINED {
                // A pending wait keeps its index.
                let len = waits.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
                waits.truncate(len);
                waits.shrink_to_fit();
            }
            let notes = &mut *lock(&self.notes.0);
            if notes.by_slot.capacity() > RETAINED {
                notes.by_slot.shrink_to_fit();
            }
            if notes.within.capacity() > RETAINED {
                notes.within.shrink_to_fit();
            }
        }
    }

    pub(crate) fn tickets(&self) -> Vec<(u32, Ticket)> {
        let waits = self.waits.borrow();
        (0..).zip(&*waits).filter_map(|(slot, wait)| Some((slot, (*wait)?.ticket))).collect()
    }
}
