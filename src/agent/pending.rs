//! An agent's pending asynchronous waits, by slot; their hold on the loop.
//!
//! The table is used on the agent's thread only, and may be out of date: the store recognises the ticket of a wait that
//! is settled.

use std::cell::{Cell, RefCell};

use waitasync_core::clock::Timestamp;
use waitasync_core::held::{Noted, SharedNotes, Within};
use waitasync_core::queue::Ticket;

/// A pending wait. There may be a million of them.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) ticket: Ticket,
    timed: bool,
    refed: bool,
}

const _: () = assert!(size_of::<Option<Wait>>() == 8);

/// A table up to this length keeps its memory.
const RETAINED: usize = 4096;

#[derive(Default)]
pub(crate) struct Pending {
    waits: RefCell<Vec<Option<Wait>>>,
    pub(crate) notes: SharedNotes,
    /// How many notes there are. Most agents have none at all: then a wait's end costs nothing more.
    noted: Cell<usize>,
    /// When the next wait began, of which it is a further step.
    pub(crate) next_began: Cell<Option<Timestamp>>,
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

    /// Notes the wait in a slot. Called before it is enqueued, so that other threads know it at every moment: but for a
    /// name, whose word is known only then.
    pub(crate) fn note(&self, slot: u32, noted: Noted) {
        self.noted.set(self.notes.add(slot, noted, self.within.take()));
    }

    /// Notes the holds in whose callbacks the next claim is made.
    pub(crate) fn set_within(&self, holds: Vec<u32>) {
        self.within.set(Some(holds.into()).filter(|holds: &Within| !holds.is_empty()));
    }

    /// Adds the wait in this slot, which has been enqueued.
    pub(crate) fn insert(&self, slot: u32, ticket: Ticket, timed: bool) {
        let wait = Wait { ticket, timed, refed: true };
        let index = slot as usize;
        let waits = &mut *self.waits.borrow_mut();
        if waits.len() <= index {
            waits.resize(index + 1, None);
        }
        waits[index] = Some(wait);
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
        let (noted, left) = self.notes.remove(slot);
        self.noted.set(left);
        noted
    }

    /// Whether there are notes. Each claim has one.
    pub(crate) fn has_notes(&self) -> bool {
        self.noted.get() > 0
    }

    pub(crate) fn ticket(&self, slot: u32) -> Option<Ticket> {
        Some(self.waits.borrow().get(slot as usize)?.as_ref()?.ticket)
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

    /// Frees the spare memory of a long table. Called when waits have been removed.
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
        }
    }

    pub(crate) fn tickets(&self) -> Vec<(u32, Ticket)> {
        let waits = self.waits.borrow();
        (0..).zip(&*waits).filter_map(|(slot, wait)| Some((slot, (*wait)?.ticket))).collect()
    }
}
