//! The operations of `Atomics.wait`, `waitAsync` and `notify`; pending promises.
//!
//! Operands are in the registers.

use std::cell::{Cell, RefCell};

use crate::agent::agent::{Agent, BlockingWait};
use crate::globals::{PROCESS, gave_up, is_shared, pass_on_notification, return_unused, service, with_word};
use waitasync_core::clock::Timestamp;
use waitasync_core::held::registers::Answer;
use waitasync_core::held::{NONE, Noted, PLAIN, SharedNotes, Within};
use waitasync_core::queue::{Location, Ticket, WaitResult, Withdrawal};

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

/// An agent's pending asynchronous waits, by slot; their hold on the loop.
///
/// The table is used on the agent's thread only, and may be out of date: the store recognises the ticket of a wait that
/// is settled.
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

impl Agent {
    /// Blocks at the location, by `block` once the wait has been enqueued.
    pub(crate) fn wait(&self, block: fn(&Self, BlockingWait) -> Answer) -> Answer {
        let registers = &self.registers;
        if self.sleeps() {
            return Answer::Interrupted;
        }
        if !registers.waits() {
            return registers.poll();
        }
        let (location, deadline) = (registers.location(), registers.deadline());
        let Some(ticket) = PROCESS.store.enqueue(location, self.thread(), deadline, || registers.is_equal()) else {
            return Answer::Settled(WaitResult::NotEqual);
        };
        let wait = BlockingWait { ticket, location, deadline, request: None, relayed: false };
        block(self, wait)
    }

    /// Waits as [`Self::wait`] does, for a class of the package. Nobody counts such notifications. So the thread spins
    /// before it is enqueued: whoever changes the word meanwhile has nobody to notify.
    pub(crate) fn wait_for(&self) -> Answer {
        if self.sleeps() {
            return Answer::Interrupted;
        }
        let noted = self.notification(None);
        if self.registers.waits() && self.changes_soon(|| !self.registers.is_equal()) {
            return Answer::Settled(WaitResult::NotEqual);
        }
        self.pending.notes.set_sleep(Some(noted));
        let answer = self.wait(Self::sleep_through);
        self.pending.notes.set_sleep(None);
        answer
    }

    /// Enqueues the promise in the slot. Its call is known only if stalls are reported, and noted then.
    pub(crate) fn wait_async(&self) -> Answer {
        match self.registers.call.get() {
            NONE => self.enqueue_promise(),
            call => {
                let noted = Noted::notification(self.registers.location(), PLAIN, None, call);
                self.noted(noted, || self.enqueue_promise())
            }
        }
    }

    fn enqueue_promise(&self) -> Answer {
        let registers = &self.registers;
        if !registers.waits() {
            return registers.poll();
        }
        if !self.can_time_out() {
            return Answer::NoTimer;
        }
        let (location, deadline, slot) = (registers.location(), registers.deadline(), registers.slot.get());
        let Some(ticket) = PROCESS.store.enqueue(location, self.waiter(slot), deadline, || registers.is_equal()) else {
            return Answer::Settled(WaitResult::NotEqual);
        };
        self.add_pending(ticket, deadline)
    }

    /// Waits as [`Self::wait_async`] does, for a class of the package. Its notification goes to the register's address.
    pub(crate) fn wait_async_for(&self) -> Answer {
        let relay = self.registers.take_relay();
        self.noted(self.notification(relay), || self.enqueue_promise())
    }

    /// Makes the notes of a class's wait.
    fn notification(&self, relay: Option<Location>) -> Noted {
        let registers = &self.registers;
        let noted = Noted::notification(registers.location(), registers.amount.get(), relay, registers.call.get());
        Noted { since: self.pending.next_began.take().unwrap_or(noted.since), ..noted }
    }

    /// Notes the wait of the promise in the slot, which `enqueue` enqueues.
    pub(crate) fn noted(&self, wait: Noted, enqueue: impl FnOnce() -> Answer) -> Answer {
        let slot = self.registers.slot.get();
        self.pending.note(slot, wait);
        let answer = enqueue();
        if !matches!(answer, Answer::Pending) {
            self.pending.remove(slot);
        }
        answer
    }

    /// Whether the promise to be enqueued can time out. Starts the service, since nothing may fail afterwards.
    pub(crate) fn can_time_out(&self) -> bool {
        !self.registers.has_timeout() || service().is_some()
    }

    /// Adds the promise in the slot, which has been enqueued.
    pub(crate) fn add_pending(&self, ticket: Ticket, deadline: Timestamp) -> Answer {
        let timed = self.registers.has_timeout();
        // Another process may end it at any time.
        let holds_loop = timed || is_shared(self.registers.location());
        self.pending.insert(self.registers.slot.get(), ticket, holds_loop);
        if timed && let Some(service) = service() {
            service.time_out(deadline);
        }
        Answer::Pending
    }

    pub(crate) fn notify(&self) -> u32 {
        let registers = &self.registers;
        PROCESS.store.notify(registers.location(), registers.count.get() as usize, Some(&self.outbox)) as u32
    }

    /// Cancels the wait in the slot: removes it from its waiter list, or its settlement from the outbox.
    ///
    /// Returns false if JavaScript will hear of its settlement all the same: it was notified, or delivery has it.
    pub(crate) fn cancel(&self) -> bool {
        let slot = self.registers.slot.get();
        let Some(ticket) = self.pending.ticket(slot) else { return false };
        let cancelled =
            PROCESS.store.withdraw_agent(ticket, &self.outbox, slot) == Withdrawal::Done || self.revoke(slot);
        if cancelled && let Some(claim) = self.pending.remove(slot).filter(|wait| wait.request.is_some()) {
            gave_up(claim.request);
            // It claimed its lock again after a notification.
            pass_on_notification(claim.relay);
        }
        cancelled
    }

    /// Revokes a settlement and passes on its grant: at once, since the thread may be about to block.
    fn revoke(&self, slot: u32) -> bool {
        let Some(result) = self.outbox.revoke(slot) else { return false };
        if result.is_acquired()
            && let Some((location, request)) = self.pending.notes.of_slot(slot).and_then(Noted::claim)
        {
            return_unused(location, request.hold(), result);
        }
        true
    }

    /// Holds an event loop that has run dry: for waits that have been notified by now, and for a claim that could have
    /// its lock by now. Returns whether it is held, perhaps by the program.
    pub(crate) fn runs_dry(&self) -> bool {
        PROCESS.store.check_words(with_word);
        self.update_hold();
        self.is_held.get() || self.environment.is_loop_alive()
    }
}
