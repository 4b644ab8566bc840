//! Delivery: how the settlements in an agent's outbox reach JavaScript, in batches, and which of them another waiter
//! gets of them if the environment ends before JavaScript has got them.

use std::sync::atomic::Ordering;

use napi::Result;

use crate::agent::agent::Agent;
use crate::agent::mail::{Caller, Progress};
use crate::process::{PROCESS, Unused, gave_up, word_at};
use waitasync_core::held::Noted;
use waitasync_core::held::registers::{NEWS, NOT_ADOPTED};
use waitasync_core::lock::{Mail, UNLOCKED};
use waitasync_core::panics::contained;
use waitasync_core::queue::{Location, Ring, Settlement, WaitResult};

/// Returns a settled wait's gift, if no entry stands for it.
fn given_beside(wait: Noted, result: WaitResult) -> Option<Unused> {
    match (wait.request, wait.relay) {
        _ if result == WaitResult::TimedOut => None,
        (Some(request), _) if !request.is_owned() => Some(Unused::Acquired(wait.location, request.hold())),
        (None, Some(relay)) => Some(Unused::Notification(relay)),
        _ => None,
    }
}

/// Returns where a claim's thread was notified before, if it acquired.
fn owed_by(wait: Noted, result: WaitResult) -> Option<Location> {
    wait.relay.filter(|_| wait.request.is_some() && result.is_acquired())
}

impl Agent {
    /// Hands the settlements in the outbox over to `lib/agent/`, in batches.
    ///
    /// A call fails if the environment is ending: then the clean-up passes on the grants that JavaScript has not
    /// got. A call also fails if the stack has come to its end or a time limit has struck: then JavaScript gets
    /// the rest after another ring, for which the caller holds the event loop.
    ///
    /// Returns false if JavaScript has turned the event loop meanwhile: the outer delivery will be continued.
    pub(crate) fn deliver_mail(&self, caller: Caller) -> bool {
        let Some(mut under_way) = self.delivery.begin() else { return false };
        let progress = &mut *under_way.progress;
        if progress.is_empty() {
            self.outbox.take(&mut progress.mail);
        } else if self.outbox.has_mail() {
            // The next delivery takes that mail.
            self.outbox.ring();
        }
        self.collect(progress, caller);
        while !progress.is_complete() {
            if self.deliver_batch(progress, caller).is_err() {
                return true;
            }
        }
        self.delivery.losses.borrow_mut().extend(&progress.mail.losses);
        progress.clear();
        if !self.delivery.losses.borrow().is_empty() && !self.deliver_news(caller) {
            under_way.continue_later();
        }
        true
    }

    /// Tells JavaScript that there is something for which it has to ask. Returns whether that succeeded.
    pub(crate) fn deliver_news(&self, caller: Caller) -> bool {
        self.environment.settle(NEWS, caller == Caller::EventLoop).is_ok()
    }

    /// Lets claims that have been woken try, and gathers the gifts. After a panic, it does the rest.
    fn collect(&self, progress: &mut Progress, caller: Caller) {
        let Progress { mail, given, owed, gathered, .. } = progress;
        for slot in std::mem::take(&mut mail.retries) {
            if !contained(|| self.retry(slot, mail, caller)) {
                // It tries again in another job.
                self.retry_later(slot);
            }
        }
        // This is the job in which the timeouts of this agent's promises are decided.
        PROCESS.store.decide(&self.outbox, &mut mail.settlements, |slot| self.pending.ticket(slot));
        while let Some(&Settlement { slot, result }) = mail.settlements.get(*gathered) {
            let index = *gathered;
            *gathered += 1;
            let Some(wait) = self.pending.remove(slot) else { continue };
            given.extend(given_beside(wait, result).map(|thing| (index, thing)));
            owed.extend(owed_by(wait, result).map(|location| (index, location)));
            if result == WaitResult::TimedOut {
                contained(|| gave_up(wait.request));
            }
        }
        self.pending.shrink();
    }

    /// Retries the woken claim in this slot: here, so that JavaScript hears of it only once it has its lock.
    ///
    /// Within a job it does so only if the lock is free. That the job itself has taken it again is no reason to hand it
    /// over later.
    fn retry(&self, slot: u32, mail: &mut Mail, caller: Caller) {
        let (Some(ticket), Some(Noted { location, request: Some(request), .. })) =
            (self.pending.ticket(slot), self.pending.noted(slot))
        else {
            return;
        };
        let word = word_at(location);
        if caller == Caller::Job && request.is_for_lock() && word.load(Ordering::SeqCst) != UNLOCKED {
            self.retry_later(slot);
        } else if let Some(result) = PROCESS.store.retry(ticket, &self.waiter(slot), word) {
            mail.settle(slot, result, Some((location, request)));
        }
    }

    /// Lets the claim in this slot retry in another job.
    fn retry_later(&self, slot: u32) {
        if self.outbox.retry(slot) == Ring::Needed && !self.pace.is_rung.replace(true) {
            self.outbox.ring();
        }
    }

    /// Delivers the next batch. Even if the call fails, `progress` says how much JavaScript has got.
    fn deliver_batch(&self, progress: &mut Progress, caller: Caller) -> Result<()> {
        let (registers, batch) = (self.registers, progress.next_batch());
        let adopts = progress.adopted <= progress.delivered;
        let held = self.robust_list.len();
        if adopts {
            self.add_acquired(progress, batch.end);
        }
        registers.put(&progress.mail.settlements[batch.clone()]);
        registers.index.set(held);
        registers.settled.set(if adopts { NOT_ADOPTED } else { 0 });
        let result = self.environment.settle(batch.len(), caller == Caller::EventLoop);
        match registers.settled.get() {
            NOT_ADOPTED if result.is_err() => self.remove_acquired(progress, batch.end, held),
            settled => {
                if adopts {
                    progress.acquired += progress.acquired_before(batch.end).count();
                    progress.adopted = batch.end;
                }
                progress.delivered =
                    if result.is_ok() { batch.end } else { (batch.start + settled as usize).min(batch.end) };
            }
        }
        result
    }

    /// Adds the grants of settlements up to `end` to the robust list.
    fn add_acquired(&self, progress: &Progress, end: usize) {
        for (slot, location, request) in progress.acquired_before(end) {
            self.robust_list.add(location, request);
            if request.is_for_lock() {
                contained(|| PROCESS.store.delivered(location, &self.waiter(slot)));
            }
        }
    }

    /// Undoes [`Self::add_acquired`], before which there were `held` entries.
    fn remove_acquired(&self, progress: &Progress, end: usize, held: u32) {
        for (slot, location, request) in progress.acquired_before(end) {
            if request.is_for_lock() {
                contained(|| PROCESS.store.undelivered(location, self.waiter(slot)));
            }
        }
        // No other JavaScript has run since, so the new entries are still at the end.
        self.robust_list.truncate(held);
    }

    /// Passes on all that JavaScript has not got: the environment ends. The robust list has the adopted ones.
    pub(crate) fn end_delivery(&self) {
        let Some(progress) = self.delivery.end() else { return };
        for (_, location, request) in progress.acquired_before(progress.mail.settlements.len()) {
            if request.is_owned() {
                contained(|| Unused::Acquired(location, request.hold()).pass_on());
            }
        }
        let given =
            progress.given.into_iter().filter(|&(index, _)| index >= progress.delivered).map(|(_, given)| given);
        let owed = progress.owed.into_iter().filter(|&(index, _)| index >= progress.adopted);
        for given in given.chain(owed.map(|(_, location)| Unused::Notification(location))) {
            contained(|| given.pass_on());
        }
    }
}
