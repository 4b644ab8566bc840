//! Delivery: how the settlements in an agent's outbox reach JavaScript, in batches; and its pace.
//!
//! # How much is settled before the event loop turns
//! A hand-over within a job costs no turn of the event loop, nor does a promise that settles at once, since a queue has
//! a message or room: so a chain of them would keep timers and other events waiting. Node serves up to 1 000 calls of
//! one threadsafe function in one turn. So the loop is known to have turned once *another* threadsafe function, rung
//! when the pace was used up, has been served, and the agent's own is rung only then.
//!
//! | turn | the time is over | a turn is awaited | the loop has turned |
//! |---|---|---|---|
//! | not asked for | asked for: one more may settle | awaited | not asked for |
//! | asked for | none may settle | awaited | not asked for |
//! | awaited | none may settle | awaited | not asked for; the agent is rung |

use std::cell::Cell;
use std::time::Duration;

use napi::Result;

use crate::agent::agent::Agent;
use crate::agent::progress::{Caller, Progress};
use crate::globals::{PROCESS, claim_stays, gave_up, word_at};
use waitasync_core::clock::Timestamp;
use waitasync_core::held::Noted;
use waitasync_core::held::registers::{NEWS, NOT_ADOPTED};
use waitasync_core::lock::{Mail, UNLOCKED};
use waitasync_core::panics::contained;
use waitasync_core::queue::{Ring, Settlement, WaitResult};

/// How many hand-overs and such promises there are without a turn of the event loop.
const MOST: u32 = 64;
/// For how long there are any, from the first one on.
const LONGEST: Duration = Duration::from_millis(1);

/// Whether the other threadsafe function is rung and unserved.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Turn {
    #[default]
    NotAskedFor,
    AskedFor,
    /// The event loop is to turn before anything is delivered: the agent is rung then.
    Awaited,
}

/// What an agent has settled since its event loop turned; and whether it awaits a turn.
#[derive(Default)]
pub(crate) struct Pace {
    made: Cell<u32>,
    since: Cell<Timestamp>,
    turn: Cell<Turn>,
    /// Whether JavaScript is to hear of a turn: promises await it, or awaited it.
    pub(crate) owes_news: Cell<bool>,
    /// Whether the agent has been rung by itself, and the event loop has not served that.
    pub(crate) is_rung: Cell<bool>,
}

impl Pace {
    /// Whether there may be a hand-over, or a settlement, at `now`. `ring` rings the other threadsafe function: when
    /// the time is over, the loop may have turned unnoticed.
    pub(crate) fn allows(&self, now: Timestamp, ring: impl FnOnce()) -> bool {
        let made = self.made.get();
        if made == 0 {
            self.since.set(now);
        }
        let is_early = now.duration_since(self.since.get()) < LONGEST;
        let allows = made < MOST && (is_early || self.turn.get() == Turn::NotAskedFor);
        if allows && !is_early {
            self.ask_for_turn(Turn::AskedFor, ring);
        }
        allows
    }

    /// Notes a hand-over, or a promise that settles at once.
    pub(crate) fn go_on(&self) {
        self.made.set(self.made.get() + 1);
    }

    /// Lets the agent be rung once its event loop has turned.
    pub(crate) fn await_turn(&self, ring: impl FnOnce()) {
        self.ask_for_turn(Turn::Awaited, ring);
    }

    fn ask_for_turn(&self, turn: Turn, ring: impl FnOnce()) {
        if self.turn.replace(turn) == Turn::NotAskedFor {
            ring();
        }
    }

    pub(crate) fn awaits_turn(&self) -> bool {
        self.turn.get() == Turn::Awaited
    }

    /// Whether anything awaits a turn, and holds the event loop.
    pub(crate) fn holds_loop(&self) -> bool {
        self.awaits_turn() || self.owes_news.get()
    }

    /// Notes that the event loop has turned, or is about to. Returns whether the agent is to be rung.
    pub(crate) fn turned(&self) -> bool {
        self.made.set(0);
        self.turn.replace(Turn::NotAskedFor) == Turn::Awaited
    }
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

#[cfg(test)]
mod tests {
    use Turn::{AskedFor, Awaited, NotAskedFor};
    use waitasync_core::clock::now;

    use super::*;

    #[test]
    fn a_turn_goes_through_all_its_states() {
        // From each: once the time is over and one more is asked for; once a turn is awaited; and once it has come.
        // With what the first and the last return, and whether the first two ring.
        for (from, late, awaited, is_awaited) in [
            (NotAskedFor, (AskedFor, true, true), (Awaited, true), false),
            (AskedFor, (AskedFor, false, false), (Awaited, false), false),
            (Awaited, (Awaited, false, false), (Awaited, false), true),
        ] {
            let (start, is_rung) = (now(), Cell::new(false));
            let ring = || is_rung.set(true);
            let (turn, made, since) = (Cell::new(from), Cell::new(1), Cell::new(start));
            let pace = Pace { made, since, turn, ..Pace::default() };
            let allows = pace.allows(start.after(LONGEST), ring);
            assert_eq!((pace.turn.replace(from), allows, is_rung.take()), late);
            pace.await_turn(ring);
            assert_eq!((pace.turn.replace(from), is_rung.take()), awaited);
            assert_eq!((pace.turned(), pace.turn.get()), (is_awaited, NotAskedFor));
        }
    }

    #[test]
    fn so_many_hand_overs_for_so_long_from_the_first_one_on_until_a_turn() {
        let (pace, start) = (Pace::default(), now());
        for since in [start, start.after(LONGEST)] {
            for _ in 0..MOST {
                assert!(pace.allows(since, || unreachable!()));
                pace.go_on();
            }
            assert!(!pace.allows(since, || unreachable!()), "they are used up");
            assert!(!pace.turned());
        }
    }
}
