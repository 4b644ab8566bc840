//! A thread that blocks in native code: how it sleeps until its wait is over, and how it can be ended meanwhile.
//!
//! `worker.terminate()` and `process.exit()` wait until the thread is back in JavaScript. So it sleeps in slices,
//! between which the engine may interrupt it; and on Linux the service interrupts it when its event loop is signalled.

use std::cell::Cell;
use std::sync::Arc;

use crate::agent::agent::{Agent, BlockingWait};
use crate::environment::Argument;
use crate::globals::{PROCESS, Unused, claim_stays, gave_up, pass_on_notification, return_unused, service, word_at};
use waitasync_core::clock::{Timestamp, now};
use waitasync_core::held::registers::Answer;
use waitasync_core::held::{Noted, PLAIN};
use waitasync_core::lock::wait_for_graph::Blocked;
use waitasync_core::lock::{Hold, Request, Waiter};
use waitasync_core::queue::{WaitResult, Woken};

/// No thread sleeps longer than this, unless its event loop is watched.
const SLICE_MILLISECONDS: f64 = 30.0;

/// The slices of a watched thread double up to this: so an end that the watch does not notice, such as a time limit of
/// `vm`, is late by no more than the thread has slept.
const WATCHED_SLICE_MILLISECONDS: f64 = 5000.0;

/// And up to this where the watch may miss a signal: the loop has been signalled and stays so, and the watch does not
/// learn of another signal of the same kind.
const SIGNALLED_SLICE_MILLISECONDS: f64 = 400.0;

/// The event loop of a worker that is terminated may be signalled a moment before the termination can be noticed. So a
/// thread that was interrupted and found nothing sleeps for so long, and then for twice as long each time.
const INTERRUPTED_SLICE_MILLISECONDS: f64 = 0.5;

/// How often a thread pauses at most between two looks at a word.
const MOST_PAUSES: u32 = 64;

enum Slept {
    Settled(Answer),
    Interrupted,
    SliceOver,
}

/// A thread's sleep in native code; dropping ends it, also in a panic.
struct Sleeping<'a>(&'a Agent);

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.0.unpublish();
        self.0.blocking.thread.set_blocked(false);
        self.0.pending.notes.set_sleep(None);
    }
}

impl Agent {
    /// Whether the thread sleeps in native code, or is between two slices.
    pub(crate) fn sleeps(&self) -> bool {
        self.blocking.thread.is_blocked()
    }

    pub(crate) fn thread(&self) -> Waiter {
        Waiter::Thread(Arc::clone(&self.blocking.thread))
    }

    /// Blocks for the wait that was prepared, after a tick: a debugger may run code there that abandons it.
    pub(crate) fn resume(&self, before: Argument) -> Answer {
        if self.environment.tick(Some(before))
            && let Some(wait) = self.blocking.wait.get()
        {
            let answer = self.block(wait);
            self.pending.notes.set_sleep(None);
            return answer;
        }
        self.abandon();
        Answer::Interrupted
    }

    pub(crate) fn block(&self, wait: BlockingWait) -> Answer {
        self.blocking.wait.set(Some(wait));
        // For an AsyncLock the thread has spun already. A grant of a strict line comes like a notification.
        let spins = !wait.request.is_some_and(Request::is_for_lock);
        match spins.then(|| self.blocking.wait_spinner.spin(|| self.blocking.thread.result())).flatten() {
            Some(result) => self.settled_by_other(wait, result),
            None => self.sleep_through(wait),
        }
    }

    /// Whether the word to wait at changes within a moment.
    ///
    /// It looks more and more rarely: whoever is about to change the word writes to its cache line again and again.
    pub(crate) fn changes_soon(&self, has_changed: impl Fn() -> bool) -> bool {
        let pauses = Cell::new(1);
        let look = || {
            (0..pauses.get()).for_each(|_| std::hint::spin_loop());
            pauses.set((2 * pauses.get()).min(MOST_PAUSES));
            has_changed().then_some(())
        };
        self.blocking.wait_spinner.spin(look).is_some()
    }

    /// Ends a wait that another thread has settled, with the recorded result.
    fn settled_by_other(&self, wait: BlockingWait, result: WaitResult) -> Answer {
        let answer = self.settled(wait, result);
        if wait.request.is_some_and(Request::is_for_lock) && result.is_acquired() {
            PROCESS.store.delivered(wait.location, &self.thread());
        }
        answer
    }

    /// Notes a grant or notification, provisional until JavaScript goes on.
    fn settled(&self, wait: BlockingWait, result: WaitResult) -> Answer {
        self.blocking.wait.set(None);
        match wait.request {
            None if result == WaitResult::Ok && wait.relayed => self.registers.set_relay(wait.location),
            None if result == WaitResult::Ok => self.registers.give(wait.location, 0),
            Some(Request::Signals(permits)) if result.is_acquired() => self.registers.give(wait.location, permits),
            Some(request) if result.is_acquired() => self.robust_list.add(wait.location, request.hold()),
            request => gave_up(request),
        }
        Answer::Settled(result)
    }

    /// Blocks as [`Self::block`] does, for a thread that has spun before.
    pub(crate) fn sleep_through(&self, wait: BlockingWait) -> Answer {
        self.blocking.wait.set(Some(wait));
        let BlockingWait { location, request, .. } = wait;
        let call = self.registers.call.get();
        let noted = Noted { location, request, relay: None, wait_kind: PLAIN, call, since: now() };
        self.pending.notes.begin_sleep(noted);
        self.blocking.thread.set_blocked(true);
        let sleeping = Sleeping(self);
        // A thread that holds nothing closes no cycle.
        self.blocking.grants_seen.set(0);
        let holds = self.robust_list.len() > 0 || self.outbox.granted() > 0;
        let deadlock = if holds { self.closes_cycle(wait) } else { None };
        let answer = deadlock.unwrap_or_else(|| self.sleep_in_slices(wait));
        drop(sleeping);
        if matches!(answer, Answer::Interrupted) {
            self.abandon();
        }
        answer
    }

    fn sleep_in_slices(&self, wait: BlockingWait) -> Answer {
        let service = service();
        let mut watched = service.is_some_and(|service| service.watch(&self.blocking.watch));
        let mut slice = SLICE_MILLISECONDS;
        let mut retry_at = None;
        loop {
            match self.sleep(wait, now().after_millis(slice), &mut retry_at) {
                Slept::Settled(answer) => return answer,
                Slept::Interrupted => slice = INTERRUPTED_SLICE_MILLISECONDS,
                Slept::SliceOver => {
                    watched = watched || service.is_some_and(|service| service.watch(&self.blocking.watch));
                    let longest = match self.blocking.watch.may_miss() {
                        _ if !watched => SLICE_MILLISECONDS,
                        true => SIGNALLED_SLICE_MILLISECONDS,
                        false => WATCHED_SLICE_MILLISECONDS,
                    };
                    slice = (2.0 * slice).min(longest);
                    // A promise of a blocked thread may have been granted a lock that others wait for.
                    let is_news = self.outbox.granted() != self.blocking.grants_seen.get();
                    if let Some(answer) = is_news.then(|| self.closes_cycle(wait)).flatten() {
                        return answer;
                    }
                }
            }
            if !self.environment.tick(None) {
                // Whoever ends one thread often ends the others next, one after the other, and they may not hear of it.
                if !watched || self.blocking.watch.may_miss() {
                    PROCESS.registry.interrupt();
                }
                return Answer::Interrupted;
            }
        }
    }

    /// Publishes that a holder sleeps without a timeout; ends a wait that closes a cycle.
    fn closes_cycle(&self, wait: BlockingWait) -> Option<Answer> {
        let BlockingWait { ticket, location, deadline, .. } = wait;
        let request = wait.request.filter(|_| deadline == Timestamp::NEVER)?;
        let blocked = Blocked { thread: Arc::clone(&self.blocking.thread), ticket, location, request };
        self.blocking.grants_seen.set(self.outbox.granted());
        let cycle = PROCESS.block(&blocked);
        self.blocking.is_published.set(cycle.is_none());
        let cycle = (self.observer.describe)(&cycle?);
        let result = PROCESS.store.withdraw_thread(ticket, &self.blocking.thread);
        if result.is_acquired() {
            return Some(self.settled_by_other(wait, result));
        }
        self.blocking.wait.set(None);
        gave_up(Some(request));
        self.blocking.cycle.replace(Some(cycle));
        self.relay();
        Some(Answer::Deadlock)
    }

    fn unpublish(&self) {
        if self.blocking.is_published.replace(false) {
            PROCESS.graph.leave(&self.blocking.thread);
        }
    }

    /// Sleeps until the wait's end, its deadline, `until`, or an interrupt.
    ///
    /// `retry_at`: when a claim that has been woken tries again.
    fn sleep(&self, wait: BlockingWait, until: Timestamp, retry_at: &mut Option<Timestamp>) -> Slept {
        let BlockingWait { ticket, location, deadline, request, .. } = wait;
        loop {
            let until = retry_at.map_or(until, |moment| moment.min(until));
            let mut woken = PROCESS.store.park(ticket, &self.blocking.thread, deadline, until);
            if woken == Woken::Retry {
                *retry_at = PROCESS.store.head_start(ticket, &self.blocking.thread);
                if retry_at.is_some() {
                    continue;
                }
            } else if woken == Woken::TimeOver && retry_at.take_if(|moment| *moment <= now()).is_some() {
                woken = Woken::Retry;
            }
            match woken {
                Woken::Settled(result) => return Slept::Settled(self.settled_by_other(wait, result)),
                Woken::Retry => {
                    request.inspect(|&request| self.robust_list.announce(location, request));
                    let word = word_at(location);
                    if let Some(result) = PROCESS.store.retry(ticket, &self.thread(), &*word) {
                        return Slept::Settled(self.settled(wait, result));
                    }
                    claim_stays(location, &word);
                    self.robust_list.retract();
                    // The next release hands the lock over, and it may come soon.
                    self.blocking.lock_spinner.spinner.spin(|| self.blocking.thread.result());
                }
                Woken::Interrupted => return Slept::Interrupted,
                Woken::TimeOver => return Slept::SliceOver,
            }
        }
    }

    /// Abandons a wait, and passes on a grant or notification.
    ///
    /// Idempotent, and called before the thread does anything else: the engine may have interrupted JavaScript.
    pub(crate) fn abandon(&self) {
        if self.sleeps() {
            return;
        }
        if let Some(given) = self.take_given() {
            given.pass_on();
        }
        if self.blocking.wait.get().is_some() {
            self.abandon_wait();
        }
    }

    #[cold]
    fn abandon_wait(&self) {
        let Some(BlockingWait { ticket, location, request, .. }) = self.blocking.wait.take() else { return };
        let result = PROCESS.store.withdraw_thread(ticket, &self.blocking.thread);
        self.pending.notes.set_sleep(None);
        match request {
            None if result == WaitResult::Ok => Unused::Notification(location).pass_on(),
            Some(request) if result.is_acquired() => drop(return_unused(location, request.hold(), result)),
            request => gave_up(request),
        }
        self.relay();
    }

    pub(crate) fn relay(&self) {
        pass_on_notification(self.registers.take_relay());
    }

    pub(crate) fn take_given(&self) -> Option<Unused> {
        self.registers.take_given().map(|(location, permits)| match permits {
            0 => Unused::Notification(location),
            permits => Unused::Acquired(location, Hold::Permits(permits)),
        })
    }

    /// Ends a wait with its environment. Returns the grant to pass on.
    pub(crate) fn end_wait(&self) -> Option<Unused> {
        self.unpublish();
        let BlockingWait { ticket, location, request, relayed, .. } = self.blocking.wait.take()?;
        let result = PROCESS.store.withdraw_thread(ticket, &self.blocking.thread);
        match request {
            None => (relayed && result == WaitResult::Ok).then_some(Unused::Notification(location)),
            Some(request) => result.is_acquired().then_some(Unused::Acquired(location, request.hold())),
        }
    }
}
