//! Delivery: how the settlements in an agent's outbox reach JavaScript, in batches.

use napi::Result;

use crate::agent::agent::Agent;
use crate::agent::progress::{Caller, Progress};
use crate::globals::{PROCESS, claim_stays, gave_up, word_at};
use waitasync_core::held::Noted;
use waitasync_core::held::registers::{NEWS, NOT_ADOPTED};
use waitasync_core::lock::{Mail, UNLOCKED};
use waitasync_core::queue::{Ring, Settlement, WaitResult};
use waitasync_core::sync::contained;

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
        while progress.delivered < progress.mail.settlements.len() {
            if self.deliver_batch(progress, caller).is_err() {
                return true;
            }
        }
        self.delivery.losses.borrow_mut().extend(&progress.mail.losses);
        progress.clear();
        if !self.delivery.losses.borrow().is_empty() && !self.deliver_news(caller) {
            self.delivery.is_interrupted.set(true);
        }
        true
    }

    /// Tells JavaScript that there is something for which it has to ask. Returns whether that succeeded.
    pub(crate) fn deliver_news(&self, caller: Caller) -> bool {
        self.environment.settle(NEWS, caller == Caller::EventLoop).is_ok()
    }

    /// Lets claims that have been woken try, and gathers what is unused. After a panic, it does the rest.
    fn collect(&self, progress: &mut Progress, caller: Caller) {
        for slot in std::mem::take(&mut progress.mail.retries) {
            if !contained(|| self.retry(slot, &mut progress.mail, caller)) {
                // It tries again in another job.
                self.retry_later(slot);
            }
        }
        // This is the job in which the timeouts of this agent's promises are decided.
        PROCESS.store.decide(&self.outbox, &mut progress.mail.settlements, |slot| self.pending.ticket(slot));
        self.gather(progress);
        self.pending.shrink();
    }

    /// Gathers what the settlements bring. Until one is delivered, no other wait has its slot.
    pub(super) fn gather(&self, progress: &mut Progress) {
        for index in progress.delivered..progress.mail.settlements.len() {
            let Settlement { slot, result } = progress.mail.settlements[index];
            let Some(wait) = self.pending.remove(slot) else { continue };
            progress.gather(index, wait, result);
            if result == WaitResult::TimedOut {
                contained(|| gave_up(wait.request));
            }
        }
    }

    /// Retries the woken claim in this slot: here, so that JavaScript hears of it only once it has its lock.
    ///
    /// Within a job it does so only if the lock is free. That the job itself has taken it again is no reason to hand it
    /// over later.
    fn retry(&self, slot: u32, mail: &mut Mail, caller: Caller) {
        let (Some(ticket), Some(Noted { location, request: Some(request), .. })) =
            (self.pending.ticket(slot), self.pending.notes.of_slot(slot))
        else {
            return;
        };
        let word = word_at(location);
        if caller == Caller::Job && request.is_for_lock() && word.load() != UNLOCKED {
            self.retry_later(slot);
        } else if let Some(result) = PROCESS.store.retry(ticket, &self.waiter(slot), &*word) {
            mail.settle(slot, result);
        } else {
            claim_stays(location, &word);
        }
    }

    /// Lets the claim in this slot retry in another job.
    fn retry_later(&self, slot: u32) {
        if self.outbox.retry(slot) == Ring::Needed && !self.pace.is_rung.replace(true) {
            self.outbox.ring();
        }
    }

    /// Delivers the next batch. Even if the call fails, `progress` says how far JavaScript has come.
    fn deliver_batch(&self, progress: &mut Progress, caller: Caller) -> Result<()> {
        let (registers, (batch, adopts)) = (self.registers, progress.next_batch());
        let held = self.robust_list.len();
        if adopts {
            self.add_acquired(progress, batch.end);
        }
        registers.put(&progress.mail.settlements[batch.clone()]);
        registers.index.set(held);
        registers.settled.set(if adopts { NOT_ADOPTED } else { 0 });
        let result = self.environment.settle(batch.len(), caller == Caller::EventLoop);
        match registers.settled.get() {
            _ if result.is_ok() => progress.advance(&batch, batch.len()),
            NOT_ADOPTED => self.remove_acquired(progress, batch.end, held),
            settled => progress.advance(&batch, settled as usize),
        }
        result
    }

    /// Adds the grants of settlements up to `end` to the robust list.
    fn add_acquired(&self, progress: &Progress, end: usize) {
        for (slot, location, hold) in progress.acquired_before(end) {
            self.robust_list.add(location, hold);
            if hold.is_of_lock() {
                contained(|| PROCESS.store.delivered(location, &self.waiter(slot)));
            }
        }
    }

    /// Undoes [`Self::add_acquired`], before which there were `held` entries.
    fn remove_acquired(&self, progress: &Progress, end: usize, held: u32) {
        for (slot, location, hold) in progress.acquired_before(end) {
            if hold.is_of_lock() {
                contained(|| PROCESS.store.undelivered(location, self.waiter(slot)));
            }
        }
        // No other JavaScript has run since, so the new entries are still at the end.
        self.robust_list.truncate(held);
    }
}
