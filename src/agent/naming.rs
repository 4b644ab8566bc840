//! The operations of named locks. Operands other than the name are in the registers.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use napi_derive::napi;

use crate::agent::agent::Agent;
use crate::globals::PROCESS;
use waitasync_core::clock::now;
use waitasync_core::held::registers::Answer;
use waitasync_core::held::{Noted, PLAIN};
use waitasync_core::json;
use waitasync_core::lock::Claimed;
use waitasync_core::lock::names::{Mode, Refusal, RequestInfo, Requested, Requester, Waits};
use waitasync_core::queue::WaitResult;

impl Agent {
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

/// Lists the process's requests for names as JSON, for `query` in `lib/named/lock-manager.js`. In their order.
#[napi(catch_unwind)]
pub fn name_requests() -> String {
    let requests = PROCESS.names.requests(&PROCESS.store);
    json::text(|text| {
        json::array(text, requests, |text, RequestInfo { name, mode, held, thread_id, .. }| {
            text.write_str("{\"name\":")?;
            json::string(text, name.iter().copied())?;
            write!(text, ",\"shared\":{},\"held\":{held},\"threadId\":{thread_id}}}", mode == Mode::Shared)
        })
    })
}

/// Counts the names in use and those that dead holders left behind.
#[napi(catch_unwind)]
pub fn name_count() -> u32 {
    PROCESS.names.count() as u32
}
