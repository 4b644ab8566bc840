//! The operations of `Atomics.wait`, `waitAsync` and `notify`; and of named locks.
//!
//! Operands other than a name are in the registers.

use std::sync::atomic::Ordering;

use crate::agent::agent::{Agent, BlockingWait};
use crate::globals::{PROCESS, gave_up, is_shared, pass_on_notification, return_unused, service, with_word};
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::held::registers::Answer;
use waitasync_core::held::{NONE, Noted, PLAIN};
use waitasync_core::lock::Claimed;
use waitasync_core::lock::names::{Refusal, Requested, Requester, Waits};
use waitasync_core::queue::{Location, Ticket, WaitResult, Withdrawal};

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

    fn requester(&self) -> Requester {
        Requester { outbox: self.outbox.clone(), thread_id: self.thread_id }
    }

    fn request_name(&self, text: &[u16], waits: Waits) -> Requested {
        let requested = PROCESS.names.request(&PROCESS.store, text, self.registers.mode(), self.requester(), waits);
        self.registers.set_location(requested.0);
        requested
    }

    /// Takes the name if that needs no waiting; "not-equal" otherwise. The registers' kind says in which mode.
    pub(crate) fn try_take_name(&self, text: &[u16]) -> Answer {
        match self.request_name(text, Waits::Never) {
            (location, request, Ok(Claimed::Now(result))) => self.acquired(location, request, result),
            _ => Answer::Settled(WaitResult::NotEqual),
        }
    }

    /// Spins for the name: a turn of the event loop takes longer. `None` if it does not become free. Does not spin
    /// while others wait, nor if this thread itself holds or awaits the name.
    ///
    /// It spins as long as for a notification. In a strict line nobody overtakes: a thread that joins it is handed the
    /// name while it sleeps, and until that thread's loop turns, the others can only join as well.
    fn spin_for_name(&self, text: &[u16]) -> Option<Requested> {
        let (name, mode) = (PROCESS.names.of_others(&PROCESS.store, text, &self.outbox)?, self.registers.mode());
        if PROCESS.store.counter(name.location()).load(Ordering::Relaxed) != 0 {
            return None;
        }
        self.blocking.wait_spinner.spin(|| {
            let requested = name.grants(mode).then(|| self.request_name(text, Waits::Never))?;
            requested.2.is_ok().then_some(requested)
        })
    }

    /// Takes the name, or enqueues the promise in the slot for it.
    pub(crate) fn claim_name_async(&self, text: &[u16]) -> Answer {
        if !self.can_time_out() {
            return Answer::NoTimer;
        }
        let (deadline, since) = (self.registers.deadline(), now());
        let wait = || self.request_name(text, Waits::As(self.waiter(self.registers.slot.get()), deadline));
        match self.spin_for_name(text).unwrap_or_else(wait) {
            (location, request, Ok(claimed)) => {
                if matches!(claimed, Claimed::Pending(_)) {
                    let (slot, call) = (self.registers.slot.get(), self.registers.call.get());
                    let noted = Noted { location, request: Some(request), relay: None, wait_kind: PLAIN, call, since };
                    self.pending.note(slot, noted);
                }
                self.await_in_line(claimed, location, request, deadline)
            }
            (.., Err(_)) => Answer::Settled(WaitResult::NotEqual),
        }
    }

    pub(crate) fn claim_name(&self, text: &[u16]) -> Answer {
        if self.sleeps() {
            return Answer::Interrupted;
        }
        let deadline = self.registers.deadline();
        let (location, request, claimed) = self.request_name(text, Waits::As(self.thread(), deadline));
        let answer = match claimed {
            Ok(claimed) => self.block_in_line(claimed, location, request, deadline),
            Err(Refusal::HeldHere) => Answer::HeldHere,
            Err(Refusal::NotAvailable) => Answer::Settled(WaitResult::NotEqual),
        };
        // Between slices of the sleep, a debugger may have run code that used other locks.
        self.registers.set_location(location);
        answer
    }

    /// Takes the name alone, from everyone who holds it. The amount is then 0 if nobody did.
    pub(crate) fn steal_name(&self, text: &[u16]) -> Answer {
        let (location, request, result, took_over) = PROCESS.names.steal(&PROCESS.store, text, self.requester());
        self.registers.set_location(location);
        self.registers.amount.set(took_over.into());
        self.acquired(location, request, result)
    }
}
