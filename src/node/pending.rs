//! The asynchronous waits of an agent that are pending, by slot, and whether they want its event loop to be kept alive.
//!
//! The table is used on the agent's thread only, and may be out of date: the store recognises the ticket of a wait that is settled. Other
//! threads read the notes on waits for locks, to find out who waits for what.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxBuildHasher;

use crate::clock::Timestamp;
use crate::lock::request::Request;
use crate::queue::bucket::Ticket;
use crate::queue::location::Location;

/// A pending wait. There may be a million of them.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    pub(super) ticket: Ticket,
    timed: bool,
    refed: bool,
}

const _: () = assert!(size_of::<Option<Wait>>() == 8);

/// What else is kept of a claim or of a wait for a `Condition`, `Barrier` or `Latch`; a plain `waitAsync` has none.
#[derive(Clone, Copy)]
pub(super) struct LockWait {
    pub(super) location: Location,
    /// What it requests, if it is a claim.
    pub(super) request: Option<Request>,
    /// Where a notification goes if the agent ends before it makes use of it. It is the notification that this wait may receive, or
    /// the one after which this claim takes its lock again.
    pub(super) relay: Option<Location>,
}

/// Tables up to this length keep their memory.
const RETAINED: usize = 4096;

/// What a thread or promise waits for a notification for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(super) enum Purpose {
    /// The program's own: a wait of `Atomics.wait` or `waitAsync`.
    #[default]
    Plain = 0,
    Condition = 1,
    Barrier = 2,
    Latch = 3,
}

impl Purpose {
    /// From its number in `lib/waiting/notice.js`.
    pub(super) const fn from_code(code: u32) -> Self {
        match code {
            1 => Self::Condition,
            2 => Self::Barrier,
            3 => Self::Latch,
            _ => Self::Plain,
        }
    }
}

/// A wait of a lock, a `Condition`, a `Barrier` or a `Latch`.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    pub(super) wait: LockWait,
    pub(super) purpose: Purpose,
    /// When the wait began. The clock is read before the wait is enqueued, since nothing may fail after that.
    pub(super) since: Timestamp,
}

type Notes = HashMap<u32, Noted, FxBuildHasher>;

/// The noted waits of an agent, by slot. Any thread may read them.
#[derive(Clone, Default)]
pub(super) struct SharedNotes(Arc<Mutex<Notes>>);

impl SharedNotes {
    fn locked<R>(&self, body: impl FnOnce(&mut Notes) -> R) -> R {
        body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is noted of the wait in this slot, if it is at `location`.
    pub(super) fn get(&self, slot: u32, location: Location) -> Option<Noted> {
        self.locked(|notes| notes.get(&slot).copied()).filter(|noted| noted.wait.location == location)
    }
}

/// The waits by slot.
#[derive(Default)]
pub(super) struct Waits {
    waits: Vec<Option<Wait>>,
    notes: Notes,
}

impl Waits {
    fn get_mut(&mut self, slot: u32) -> Option<&mut Wait> {
        self.waits.get_mut(slot as usize)?.as_mut()
    }

    pub(super) fn lock_wait(&self, slot: u32) -> Option<LockWait> {
        Some(self.notes.get(&slot)?.wait)
    }

    /// Those that have not been removed.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Ticket)> {
        (0..).zip(&self.waits).filter_map(|(slot, wait)| Some((slot, (*wait)?.ticket)))
    }

    /// Gives back the memory of a table that was much longer than it needs to be.
    fn shrink(&mut self) {
        if self.waits.capacity() > RETAINED {
            // A pending wait keeps its index.
            while self.waits.last().is_some_and(Option::is_none) {
                self.waits.pop();
            }
            self.waits.shrink_to_fit();
        }
    }
}

/// The pending waits of an agent.
#[derive(Default)]
pub(super) struct Pending {
    /// Without their notes.
    waits: RefCell<Waits>,
    pub(super) notes: SharedNotes,
    /// How many notes there are. Most agents have none at all: then a wait's end costs nothing more.
    noted: Cell<usize>,
    /// How many of them, with and without a time-out, want the event loop to be kept alive.
    timed: Cell<usize>,
    untimed: Cell<usize>,
}

impl Pending {
    fn count(&self, wait: Wait, change: isize) {
        let count = if wait.timed { &self.timed } else { &self.untimed };
        count.set(count.get().wrapping_add_signed(change));
    }

    /// Notes what the wait in a slot is for. Called before the wait is enqueued, so that other threads know it at every moment.
    pub(super) fn note(&self, slot: u32, noted: Noted) {
        self.noted.set(self.notes.locked(|notes| {
            notes.insert(slot, noted);
            notes.len()
        }));
    }

    /// The wait in this slot has been enqueued. `claim`: what is to be noted of it, if that has not been done before.
    pub(super) fn insert(&self, slot: u32, ticket: Ticket, timed: bool, claim: Option<Noted>) {
        let wait = Wait { ticket, timed, refed: true };
        let index = slot as usize;
        let waits = &mut self.waits.borrow_mut().waits;
        if waits.len() <= index {
            waits.resize(index + 1, None);
        }
        waits[index] = Some(wait);
        if let Some(claim) = claim {
            self.note(slot, claim);
        }
        self.count(wait, 1);
    }

    /// The wait in this slot is over.
    pub(super) fn remove(&self, slot: u32) -> Option<LockWait> {
        let wait = self.waits.borrow_mut().waits.get_mut(slot as usize).and_then(Option::take);
        if let Some(wait) = wait.filter(|wait| wait.refed) {
            self.count(wait, -1);
        }
        if self.noted.get() == 0 {
            return None;
        }
        let (noted, left) = self.notes.locked(|notes| (notes.remove(&slot), notes.len()));
        self.noted.set(left);
        Some(noted?.wait)
    }

    pub(super) fn ticket(&self, slot: u32) -> Option<Ticket> {
        Some(self.waits.borrow().waits.get(slot as usize)?.as_ref()?.ticket)
    }

    pub(super) fn lock_wait(&self, slot: u32) -> Option<LockWait> {
        Some(self.notes.locked(|notes| notes.get(&slot).copied())?.wait)
    }

    /// Sets whether the wait in this slot wants the event loop to be kept alive.
    pub(super) fn set_refed(&self, slot: u32, refed: bool) {
        if let Some(wait) = self.waits.borrow_mut().get_mut(slot)
            && wait.refed != refed
        {
            wait.refed = refed;
            self.count(*wait, if refed { 1 } else { -1 });
        }
    }

    /// Whether a pending wait keeps the event loop alive. Without a time-out, only another thread can settle it.
    pub(super) fn holds_loop(&self, other_threads: impl FnOnce() -> bool) -> bool {
        self.timed.get() > 0 || (self.untimed.get() > 0 && other_threads())
    }

    /// Called when waits have been removed.
    pub(super) fn shrink(&self) {
        // Then nothing is pending but what was unref'd.
        if self.timed.get() + self.untimed.get() == 0 {
            self.waits.borrow_mut().shrink();
            self.notes.locked(|notes| {
                if notes.capacity() > RETAINED {
                    notes.shrink_to_fit();
                }
            });
        }
    }

    /// Removes all waits, for the agent's end.
    pub(super) fn take(&self) -> Waits {
        let waits = self.waits.take().waits;
        self.noted.set(0);
        Waits { waits, notes: self.notes.locked(std::mem::take) }
    }
}
