//! The operations of locks: claiming, taking, releasing, and telling who holds them. Operands are in the registers.
//!
//! JavaScript makes room in the robust list before it asks for anything.
//!
//! Between the moment at which a waiter is enqueued and that at which its agent has noted it (in `Blocking`
//! or `Pending`) nothing is called that can panic, block or fail: otherwise nobody would know of the waiter, and a
//! grant to it would be lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::agent::agent::{Agent, BlockingWait};
use crate::agent::progress::Caller;
use crate::environment::Argument;
use crate::globals::{
    PROCESS, claim_has_joined, pass_on_notification, pass_to_other_processes, return_unused, shared_word, word_at,
};
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::held::registers::{Answer, FREED, HELD_ELSEWHERE, NOT_LOCKED};
use waitasync_core::held::{CONDITION, Noted, PLAIN, Registered};
use waitasync_core::lock::{Claimed, Freed, Hold, ROOM, Released, Request, UNLOCKED, Waiter};
use waitasync_core::queue::{Location, WaitResult};

/// How long a thread that frees a lock by mistake looks again at one that mentions it: that may just be trying to take
/// it. That takes some instructions, unless the system has suspended the thread.
const POSSIBLE: Duration = Duration::from_millis(10);

/// How long it may take until another thread's plain writes, made by JavaScript, are seen in their order.
const SETTLING: Duration =
    if cfg!(any(target_arch = "x86_64", target_arch = "x86")) { Duration::ZERO } else { Duration::from_micros(20) };

impl Agent {
    /// Takes the request, or blocks until it is granted.
    pub(crate) fn claim(&self) -> Answer {
        if self.sleeps() {
            return Answer::Interrupted;
        }
        let registers = &self.registers;
        let (location, deadline, request) = (registers.location(), registers.deadline(), registers.request());
        let word = word_at(location);
        // A spinning thread is not counted as a waiter, so a release by another thread makes no native call.
        if request.is_for_lock()
            && let Some(result) = self.blocking.lock_spinner.spin(deadline, || self.take_free(location, request))
        {
            return self.acquired(location, request, result);
        }
        self.robust_list.announce(location, request);
        let claimed = PROCESS.store.claim(location, self.thread(), request, deadline, &*word);
        self.block_in_line(claimed, location, request, deadline)
    }

    /// Takes the request, or enqueues the promise in the slot for it.
    pub(crate) fn claim_async(&self) -> Answer {
        let registers = &self.registers;
        // It stays there until the claim has it.
        let relay = registers.relay();
        if !self.can_time_out() {
            return Answer::NoTimer;
        }
        let (location, deadline, request) = (registers.location(), registers.deadline(), registers.request());
        let word = word_at(location);
        // The thread spins as for a blocking claim, since a turn of the event loop takes longer than most locks are
        // held. But not while others wait, and not if this thread itself holds the lock.
        if request.is_for_lock()
            && PROCESS.store.counter(location).load(Ordering::Relaxed) == 0
            && registers.amount.get() == 0
            && let Some(result) = self.blocking.lock_spinner.spin_without_sleep(|| self.take_free(location, request))
        {
            return self.acquired(location, request, result);
        }
        let call = registers.call.get();
        let noted = Noted { location, request: Some(request), relay, wait_kind: PLAIN, call, since: now() };
        self.noted(noted, || {
            self.robust_list.announce(location, request);
            let claimed = PROCESS.store.claim(location, self.waiter(registers.slot.get()), request, deadline, &*word);
            self.await_in_line(claimed, location, request, deadline)
        })
    }

    /// Blocks for a claim that has joined a line.
    pub(crate) fn block_in_line(
        &self,
        claimed: Claimed,
        location: Location,
        request: Request,
        deadline: Timestamp,
    ) -> Answer {
        let ticket = match claimed {
            Claimed::Now(result) => return self.acquired(location, request, result),
            Claimed::Pending(ticket) => ticket,
        };
        self.robust_list.retract();
        let wait = BlockingWait { ticket, location, deadline, request: Some(request), relayed: false };
        self.blocking.wait.set(Some(wait));
        claim_has_joined(location);
        self.block(wait)
    }

    /// Claims as [`Self::block_in_line`] does, for the promise in the slot. Its wait is noted.
    pub(crate) fn await_in_line(
        &self,
        claimed: Claimed,
        location: Location,
        request: Request,
        deadline: Timestamp,
    ) -> Answer {
        let ticket = match claimed {
            Claimed::Now(result) => return self.acquired(location, request, result),
            Claimed::Pending(ticket) => ticket,
        };
        self.robust_list.retract();
        let answer = self.add_pending(ticket, deadline);
        self.registers.take_relay();
        claim_has_joined(location);
        answer
    }

    /// Takes the request if that needs no waiting; "not-equal" otherwise. JavaScript asks for a lock only for a promise.
    pub(crate) fn try_take(&self) -> Answer {
        let registers = &self.registers;
        let (location, request) = (registers.location(), registers.request());
        let taken = self.announced(location, request, || {
            PROCESS.store.try_take(location, request, &*word_at(location), Some(&self.outbox))
        });
        match taken {
            Some(result) => self.acquired(location, request, result),
            None => Answer::Settled(WaitResult::NotEqual),
        }
    }

    /// Takes the request if that needs no waiting. An attempt that fails leaves no announcement.
    fn announced(
        &self,
        location: Location,
        request: Request,
        attempt: impl FnOnce() -> Option<WaitResult>,
    ) -> Option<WaitResult> {
        self.robust_list.announce(location, request);
        let taken = attempt();
        if taken.is_none() {
            self.robust_list.retract();
        }
        taken
    }

    pub(crate) fn acquired(&self, location: Location, request: Request, result: WaitResult) -> Answer {
        if request.is_owned() {
            self.robust_list.add(location, request.hold());
        }
        Answer::Settled(result)
    }

    /// Takes a lock if it is free. While it is not, nothing is announced: `free` would take the thread for its holder.
    fn take_free(&self, location: Location, request: Request) -> Option<WaitResult> {
        let word = word_at(location);
        let is_free = word.load() == UNLOCKED;
        let attempt = || PROCESS.store.try_take(location, request, &*word, None);
        if is_free { self.announced(location, request, attempt) } else { None }
    }

    /// Enqueues the thread, and only then releases the entry at the index: so a notification by a thread that gets the
    /// lock from here on wakes this one. Then it calls `on_released`, and blocks.
    pub(crate) fn wait_giving_back(&self, on_released: Argument) -> Answer {
        if self.sleeps() {
            return Answer::Interrupted;
        }
        self.relay();
        let (location, deadline) = (self.registers.location(), self.registers.deadline());
        self.pending.notes.set_sleep(Some(Noted::notification(location, CONDITION, None, self.registers.call.get())));
        let Some(ticket) = PROCESS.store.enqueue(location, self.thread(), deadline, || true) else {
            return Answer::Settled(WaitResult::NotEqual);
        };
        self.blocking.wait.set(Some(BlockingWait { ticket, location, deadline, request: None, relayed: true }));
        // A condition's lock has no name, so it cannot have been stolen.
        self.release();
        self.resume(on_released)
    }

    /// Releases the entry at the index of the robust list. Returns false if it is a named lock that was stolen before.
    pub(crate) fn release(&self) -> bool {
        self.release_entry(false, || self.outbox.ring())
    }

    /// Releases the entry at the index; calls `serve` if there is mail of this agent's then. `hands_over`: its promises
    /// count as ready.
    fn release_entry(&self, hands_over: bool, serve: impl FnOnce()) -> bool {
        let Some((location, hold)) = self.robust_list.remove() else { return true };
        let (was_held, released, has_mail) = if let Some(id) = hold.id() {
            let has_mail = PROCESS.names.release_unrung(&PROCESS.store, id, &self.outbox);
            (has_mail.is_some(), Released::GoOn, has_mail.unwrap_or_default())
        } else {
            let (store, word) = (&PROCESS.store, &*word_at(location));
            let (released, has_mail) = store.release_unrung(location, hold, word, &self.outbox, hands_over);
            (true, released, has_mail)
        };
        self.robust_list.retract();
        if has_mail {
            serve();
        } else if released == Released::MakeRoom && self.thread_id != 0 {
            // The main thread must not sleep.
            std::thread::sleep(ROOM);
        }
        was_held
    }

    /// Gives back at a callback's end, in a job of its own: grants to this thread's promises come at once.
    pub(crate) fn release_in_job(&self) -> bool {
        self.release_at_pace(true, || {
            // Timeouts and losses wait for a job of their own.
            if self.outbox.has_only_successes() && self.delivery.is_idle() {
                self.pace.go_on();
                self.deliver_now();
            } else {
                self.outbox.ring();
            }
        })
    }

    /// Gives back where JavaScript goes on, as `unlock()` does. The word is freed, so that this job can take it by a
    /// blocking or `try` form. If it wakes a promise of this thread, AMOUNT tells JavaScript to call
    /// [`Self::serve_promises`] in the next microtask.
    pub(crate) fn release_midway(&self) -> bool {
        self.registers.amount.set(0);
        self.release_at_pace(false, || {
            self.pace.go_on();
            // Whatever becomes of the microtask. One ring is enough for all releases until it is served.
            if !self.pace.is_rung.replace(true) {
                self.outbox.ring();
            }
            self.registers.amount.set(1);
        })
    }

    /// Releases the entry at the index. For mail of this agent's, `serve` is called, or its event loop turns first.
    fn release_at_pace(&self, hands_over: bool, serve: impl FnOnce()) -> bool {
        // Only with promises is there a pace to be kept. Asked before, since a clock might fail.
        let is_in_time = self.pending.noted.get() > 0 && self.pace.allows(now(), || self.turn_bell.ring());
        self.release_entry(hands_over && is_in_time, || {
            if is_in_time {
                serve();
            } else {
                self.await_turn();
            }
        })
    }

    fn await_turn(&self) {
        self.pace.await_turn(|| self.turn_bell.ring());
    }

    /// Counts a promise that settles at once. Answers false if it waits for the event loop to turn: JavaScript is called then.
    pub(crate) fn settles_at_once(&self) -> bool {
        let is_in_time = self.pace.allows(now(), || self.turn_bell.ring());
        if is_in_time {
            self.pace.go_on();
        } else {
            self.await_turn();
            self.pace.owes_news.set(true);
        }
        is_in_time
    }

    fn deliver_now(&self) {
        self.deliver_mail(Caller::Job);
        if self.delivery.is_interrupted.get() {
            self.outbox.ring();
        }
    }

    /// Lets this thread's promises try that it woke in this job. The agent has been rung for the rest.
    pub(crate) fn serve_promises(&self) {
        let is_ready = !self.pace.awaits_turn() && self.delivery.is_idle();
        if is_ready && self.outbox.has_mail() && self.outbox.has_only_successes() {
            self.deliver_now();
        }
    }

    /// Gives back after a failure: a notification that the hold owes goes to another waiter.
    pub(crate) fn release_and_forward_notify(&self) -> bool {
        let owed = self.robust_list.owed();
        let was_held = self.release();
        pass_on_notification(owed);
        was_held
    }

    /// Gives back, forwards the notification, and reports a death.
    pub(crate) fn release_owner_died(&self) -> bool {
        let owed = self.robust_list.owed();
        let Some((location, hold)) = self.robust_list.remove() else { return true };
        let was_held = return_unused(location, hold, WaitResult::AcquiredFromDead);
        self.robust_list.retract();
        pass_on_notification(owed);
        was_held
    }

    pub(crate) fn was_stolen(&self) -> bool {
        let stolen =
            |(location, hold): (Location, Hold)| hold.id().is_some_and(|id| !PROCESS.store.holds(location, id));
        self.robust_list.at_index().is_some_and(stolen)
    }

    pub(crate) fn released(&self) {
        let location = self.registers.location();
        PROCESS.store.word_changed(location, &*word_at(location));
        pass_to_other_processes(location);
    }

    pub(crate) fn take_note_of_death(&self) -> bool {
        let (location, hold) = (self.registers.location(), self.registers.request().hold());
        PROCESS.store.take_note_of_death(location, hold, &*word_at(location))
    }

    /// Turns this thread's exclusive access of a shared word into a reader's.
    pub(crate) fn downgrade(&self) {
        let location = self.registers.location();
        if let Some(word) = shared_word(location) {
            PROCESS.store.downgrade(location, &word, || word.downgrade());
        }
    }

    /// Frees a lock that no other thread is known to hold: answers [`FREED`], [`NOT_LOCKED`], or [`HELD_ELSEWHERE`].
    ///
    /// A thread that has the lock, or has been granted it, is reported at once. One that only mentions it may be just
    /// trying to take it, or have released it: it is looked at again for as long as [`POSSIBLE`].
    pub(crate) fn free(&self) -> u32 {
        let (location, start) = (self.registers.location(), now());
        let holder = |granted: Option<&Waiter>| {
            let look = now();
            while now().duration_since(look) < SETTLING {
                std::hint::spin_loop();
            }
            let is_other = |agent: &Registered| !Arc::ptr_eq(&agent.known.outbox, &self.outbox);
            let holds = |agent: &Registered| {
                granted.is_some_and(|waiter| agent.known.is(waiter))
                    || (is_other(agent) && agent.robust_list.holds(location))
            };
            let mentions = |agent: &Registered| is_other(agent) && agent.robust_list.mentions(location);
            let certain = PROCESS.registry.thread_of(holds).map(|thread_id| (thread_id, true));
            certain.or_else(|| PROCESS.registry.thread_of(mentions).map(|thread_id| (thread_id, false)))
        };
        loop {
            match PROCESS.store.free(location, &*word_at(location), holder) {
                Freed::Now => return FREED,
                Freed::NotLocked => return NOT_LOCKED,
                Freed::Held((thread_id, is_certain)) if is_certain || now().duration_since(start) >= POSSIBLE => {
                    self.registers.amount.set(thread_id);
                    return HELD_ELSEWHERE;
                }
                Freed::Held(_) => std::thread::yield_now(),
            }
        }
    }

    /// Returns the `threadId` of the lock's holder, if that is an agent.
    pub(crate) fn holder(&self) -> Option<u32> {
        let location = self.registers.location();
        PROCESS.store.with_grant(location, |granted| {
            let got_it = PROCESS.registry.thread_of(|agent| granted.is_some_and(|waiter| agent.known.is(waiter)));
            got_it.or_else(|| PROCESS.registry.thread_of(|agent| agent.robust_list.holds(location)))
        })
    }
}
