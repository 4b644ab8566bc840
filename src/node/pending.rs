//! The asynchronous waits of an agent that are pending, by slot, and whether they want its event loop to be kept alive.
//!
//! Used on the agent's thread only, and may be out of date: the store recognises the ticket of a wait that is settled.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

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

/// What is kept of a wait of a lock or of a `Condition` beside. A plain `waitAsync` has none.
#[derive(Clone, Copy)]
pub(super) struct LockWait {
    pub(super) location: Location,
    /// What it requests, if it is a claim.
    pub(super) request: Option<Request>,
    /// Where a notification goes if the agent ends before it makes use of it: the one that this wait may receive, or the one
    /// because of which this claim wants its lock.
    pub(super) relay: Option<Location>,
}

/// The waits by slot.
#[derive(Default)]
pub(super) struct Waits {
    waits: Vec<Option<Wait>>,
    lock_waits: HashMap<u32, LockWait, FxBuildHasher>,
}

impl Waits {
    fn get_mut(&mut self, slot: u32) -> Option<&mut Wait> {
        self.waits.get_mut(slot as usize)?.as_mut()
    }

    pub(super) fn lock_wait(&self, slot: u32) -> Option<LockWait> {
        self.lock_waits.get(&slot).copied()
    }

    /// Those that have not been removed.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Ticket)> {
        (0..).zip(&self.waits).filter_map(|(slot, wait)| Some((slot, (*wait)?.ticket)))
    }

    /// Gives back the memory of a table that was much longer than it needs to be.
    fn shrink(&mut self) {
        const RETAINED: usize = 4096;
        if self.waits.capacity() > RETAINED {
            // A pending wait keeps its index.
            while self.waits.last().is_some_and(Option::is_none) {
                self.waits.pop();
            }
            self.waits.shrink_to_fit();
        }
        if self.lock_waits.capacity() > RETAINED {
            self.lock_waits.shrink_to_fit();
        }
    }
}

/// The pending waits of an agent.
#[derive(Default)]
pub(super) struct Pending {
    waits: RefCell<Waits>,
    /// How many of them, with and without a time-out, want the event loop to be kept alive.
    timed: Cell<usize>,
    untimed: Cell<usize>,
}

impl Pending {
    fn count(&self, wait: Wait, change: isize) {
        let count = if wait.timed { &self.timed } else { &self.untimed };
        count.set(count.get().wrapping_add_signed(change));
    }

    pub(super) fn insert(&self, slot: u32, ticket: Ticket, timed: bool, lock_wait: Option<LockWait>) {
        let wait = Wait { ticket, timed, refed: true };
        let Waits { waits, lock_waits } = &mut *self.waits.borrow_mut();
        let index = slot as usize;
        if waits.len() <= index {
            waits.resize(index + 1, None);
        }
        waits[index] = Some(wait);
        if let Some(lock_wait) = lock_wait {
            lock_waits.insert(slot, lock_wait);
        }
        self.count(wait, 1);
    }

    /// The wait in this slot is over.
    pub(super) fn remove(&self, slot: u32) -> Option<LockWait> {
        let Waits { waits, lock_waits } = &mut *self.waits.borrow_mut();
        let wait = waits.get_mut(slot as usize).and_then(Option::take);
        if let Some(wait) = wait.filter(|wait| wait.refed) {
            self.count(wait, -1);
        }
        // Most agents have none at all: then this costs nothing.
        if lock_waits.is_empty() { None } else { lock_waits.remove(&slot) }
    }

    pub(super) fn ticket(&self, slot: u32) -> Option<Ticket> {
        Some(self.waits.borrow().waits.get(slot as usize)?.as_ref()?.ticket)
    }

    pub(super) fn lock_wait(&self, slot: u32) -> Option<LockWait> {
        self.waits.borrow().lock_wait(slot)
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
        // Then nothing is pending, but perhaps what was unref'd.
        if self.timed.get() + self.untimed.get() == 0 {
            self.waits.borrow_mut().shrink();
        }
    }

    /// Removes all waits, for the agent's end.
    pub(super) fn take(&self) -> Waits {
        self.waits.take()
    }
}
