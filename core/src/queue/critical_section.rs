//! The critical section of a bucket: the right to change its lists.
//!
//! Inside a critical section results are *recorded*: in the blocked thread, or in the agent's outbox. The threads and
//! agents concerned are woken when it is dropped (invariant 5).

use std::fmt::Debug;

use super::counters::{Counted, Counters};
use super::other_processes;
use super::outbox::Outbox;
use super::waiter::{Waiter, Wakes};
use super::waiter_list::{OVERDUE, Record, WaiterLists};
use super::{Listed, Location, Ring, Successor, Ticket, WaitResult, WaiterKey};
use crate::clock::Timestamp;
use crate::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering, lock};

/// The layer above: its state in each bucket, and when claims are woken. The queue never looks at a claim. It calls
/// these functions inside a critical section.
pub trait Policy: Debug + Default {
    /// The request of a waiter that wants more than a notification.
    type Claim: Copy + Debug;

    /// Notes that a claim or a blocked thread has been appended. A thread without a claim waits for a notification.
    fn appended(&mut self, location: Location, key: WaiterKey, claim: Option<Self::Claim>, blocks: bool);

    /// Notes that a claim or a blocked thread has left its list.
    fn removed(&mut self, location: Location, key: WaiterKey, claim: Option<Self::Claim>, blocks: bool) -> Successor;

    fn claims(&self, location: Location) -> u32;

    /// Wakes the first waiter at `location` that can use the word's value.
    fn wake_successor(section: &mut CriticalSection<'_, Self>, location: Location);

    /// Wakes the first claim, which has this key, for a retry. One notification wakes no other claim.
    fn notify_claim(section: &mut CriticalSection<'_, Self>, location: Location, key: WaiterKey);
}

#[derive(Debug)]
pub(crate) struct Lists<P: Policy> {
    pub(crate) waiters: WaiterLists<P::Claim>,
    /// The policy's state in this bucket.
    pub(crate) policy: P,
}

impl<P: Policy> Default for Lists<P> {
    fn default() -> Self {
        Self { waiters: WaiterLists::default(), policy: P::default() }
    }
}

/// A shard of the queue, with its own lock: the waiters of all locations whose cache lines share a hash.
#[derive(Debug)]
pub(crate) struct Bucket<P: Policy> {
    /// The earliest deadline of its promises and their claims, for threads that do not hold the lock.
    pub(super) earliest_deadline: AtomicU64,
    lists: Mutex<Lists<P>>,
}

impl<P: Policy> Default for Bucket<P> {
    fn default() -> Self {
        Self { earliest_deadline: AtomicU64::new(Timestamp::NEVER.as_nanos()), lists: Mutex::default() }
    }
}

/// The lock of one bucket, held.
///
/// It ends when this is dropped, also by a panic: then, too, the bucket's earliest deadline is published, and the
/// waiters whose results have been recorded are woken, with no lock held (fields are dropped in their order).
pub struct CriticalSection<'a, P: Policy> {
    bucket: &'a Bucket<P>,
    index: usize,
    pub(crate) counters: &'a Counters,
    clock: fn() -> Timestamp,
    pub(crate) lists: MutexGuard<'a, Lists<P>>,
    now: Option<Timestamp>,
    /// The agent that runs this. Its own promises do not time out meanwhile, even if their deadlines have passed.
    pub(crate) runs: Option<&'a Arc<Outbox>>,
    pub(super) wakes: Wakes,
    /// Whether the waiter that leaves now is uncounted already, since another process has notified it.
    pub(super) delivers: bool,
    /// Whether the last waiter that left has taken such a notification with it.
    pub(super) took_notification: bool,
}

impl<P: Policy> Drop for CriticalSection<'_, P> {
    fn drop(&mut self) {
        let earliest = self.lists.waiters.earliest_deadline().as_nanos();
        if self.bucket.earliest_deadline.load(Ordering::Relaxed) != earliest {
            // SeqCst: pairs with the service's re-check, see `Alarm`.
            self.bucket.earliest_deadline.store(earliest, Ordering::SeqCst);
        }
    }
}

impl<'a, P: Policy> CriticalSection<'a, P> {
    pub(super) fn enter(bucket: &'a Bucket<P>, index: usize, counters: &'a Counters, clock: fn() -> Timestamp) -> Self {
        let lists = lock(&bucket.lists);
        let (now, runs, wakes, delivers, took_notification) = Default::default();
        Self { bucket, index, counters, clock, lists, now, runs, wakes, delivers, took_notification }
    }

    /// Returns the present moment, looked up once per section.
    pub(crate) fn now(&mut self) -> Timestamp {
        *self.now.get_or_insert_with(self.clock)
    }

    /// Appends a waiter if `waits` agrees once it is counted (invariant 3).
    pub(crate) fn append(
        &mut self,
        location: Location,
        listed: Listed<P::Claim>,
        deadline: Timestamp,
        waits: impl FnOnce(&mut Self) -> bool,
    ) -> Option<Ticket> {
        let counted = Counted::new(self.counters.of_word(location));
        let others = other_processes::at(location);
        if let Some(others) = others {
            Self::enters(others, location, listed.claim.is_some());
        }
        if !waits(self) {
            if let Some(others) = others {
                self.leaves(others, location, listed.claim.is_some());
                if let (true, Some(waits)) = (self.took_notification, others.waits_at(location, false)) {
                    // It was counted for some instructions only. All others of this process are notified.
                    waits.notify(1, &mut |_| 0);
                }
            }
            return None;
        }
        let (claim, blocks) = (listed.claim, listed.waiter.blocks());
        if let Waiter::Thread(thread) = &listed.waiter {
            thread.reset();
        }
        let key = self.lists.waiters.push_back(location, deadline, listed);
        counted.keep();
        if claim.is_some() || blocks {
            self.lists.policy.appended(location, key, claim, blocks);
        }
        Some(self.ticket(key))
    }

    /// Runs `body` while a claim is counted: whoever releases the word meanwhile makes its native call.
    pub(crate) fn counted<R>(&mut self, location: Location, body: impl FnOnce(&mut Self) -> R) -> R {
        let _counted = Counted::new(self.counters.of_word(location));
        let others = other_processes::at(location);
        if let Some(others) = others {
            Self::enters(others, location, true);
        }
        let result = body(self);
        if let Some(others) = others {
            self.leaves(others, location, true);
        }
        result
    }

    pub(crate) fn unlist(&mut self, key: WaiterKey) -> (Listed<P::Claim>, Successor) {
        let Record { location, listed, .. } = self.lists.waiters.remove(key);
        self.counters.of_word(location).fetch_sub(1, Ordering::SeqCst);
        let (claim, blocks) = (listed.claim, listed.waiter.blocks());
        let successor = if listed.is_plain_promise() {
            Successor::Unconcerned
        } else {
            self.lists.policy.removed(location, key, claim, blocks)
        };
        self.took_notification = false;
        if let Some(others) = other_processes::at(location) {
            self.leaves(others, location, claim.is_some());
        }
        (listed, successor)
    }

    /// Removes a waiter from its list and records its result (invariant 2).
    pub(crate) fn dequeue(&mut self, key: WaiterKey, result: WaitResult) -> Successor {
        let (listed, successor) = self.unlist(key);
        let result = if self.took_notification { WaitResult::Ok } else { result };
        self.settle(listed.waiter, result);
        successor
    }

    pub(crate) fn settle(&mut self, waiter: Waiter, result: WaitResult) {
        let ring = match &waiter {
            Waiter::Thread(thread) => thread.settle(result),
            Waiter::Agent(outbox, slot) => outbox.settle(*slot, result),
        };
        if ring == Ring::Needed {
            self.wakes.0.push(waiter);
        }
    }

    /// Wakes a claim, which stays in its list, so that it retries.
    pub(crate) fn wake_to_retry(&mut self, key: WaiterKey) {
        let Some(waiter) = self.listed(key).map(|listed| listed.waiter.clone()) else { return };
        let ring = match &waiter {
            Waiter::Thread(thread) => thread.retry(),
            Waiter::Agent(outbox, slot) => outbox.retry(*slot),
        };
        if ring == Ring::Needed {
            self.wakes.0.push(waiter);
        }
    }

    /// Notifies up to `count` waiters; of claims only one. Returns their number.
    pub(super) fn notify(&mut self, location: Location, count: usize) -> usize {
        let (mut claim_woken, mut wakes_successor) = (false, false);
        let (mut woken, mut next) = self.notify_first_promise(location);
        while woken < count
            && let Some(key) = next
        {
            let is_claim = self.claim(key).is_some();
            let is_further_claim = is_claim && claim_woken;
            // Mostly there is nobody else.
            if is_further_claim && self.lists.waiters.count(location) == self.lists.policy.claims(location) {
                break;
            }
            next = self.lists.waiters.next(key);
            if is_further_claim {
                continue;
            }
            let is_due = self.is_due(key);
            woken += usize::from(!is_due);
            if is_claim && !is_due {
                claim_woken = true;
                P::notify_claim(self, location, key);
            } else {
                let result = if is_due { WaitResult::TimedOut } else { WaitResult::Ok };
                wakes_successor |= self.dequeue(key, result) == Successor::ToBeWoken;
                // That notification has been counted.
                woken -= usize::from(self.took_notification && !is_due);
            }
        }
        if wakes_successor {
            P::wake_successor(self, location);
        }
        woken
    }

    /// Notifies the first waiter if it is an untimed promise. Most are. Returns the number notified, and the first
    /// waiter then. The general way does three look-ups instead of one.
    fn notify_first_promise(&mut self, location: Location) -> (usize, Option<WaiterKey>) {
        let first =
            if other_processes::is_shared(location) { None } else { self.lists.waiters.pop_front_promise(location) };
        let Some((first, next)) = first else {
            return (0, self.lists.waiters.front(location));
        };
        self.counters.of_word(location).fetch_sub(1, Ordering::SeqCst);
        self.settle(first.waiter, WaitResult::Ok);
        (1, next)
    }

    fn deadline(&self, key: WaiterKey) -> Timestamp {
        self.lists.waiters.get(key).map_or(Timestamp::NEVER, |record| record.deadline)
    }

    /// Whether a waiter's deadline has passed: then it takes nothing any more, even if neither the service nor its own
    /// thread has timed it out yet. Except for a promise of the agent that runs this.
    pub(crate) fn is_due(&mut self, key: WaiterKey) -> bool {
        match self.deadline(key) {
            Timestamp::NEVER => false,
            deadline => deadline <= self.now() && !self.is_of_runner(key, false),
        }
    }

    /// Whether the waiter is the runner's promise, with or without a claim.
    pub(crate) fn is_of_runner(&self, key: WaiterKey, claims: bool) -> bool {
        let is_its =
            |(runner, listed): (_, &Listed<_>)| listed.claim.is_some() == claims && listed.waiter.is_of(runner);
        self.runs.zip(self.listed(key)).is_some_and(is_its)
    }

    /// Expires a waiter whose deadline has come. A claim times out; a promise stays until its agent decides.
    pub(super) fn expire(&mut self, key: WaiterKey, location: Location) {
        let Some(Listed { waiter, claim: None }) = self.listed(key).cloned() else {
            self.time_out(key, location);
            return;
        };
        self.lists.waiters.mark_overdue(key);
        self.settle(waiter, WaitResult::Due);
    }

    /// Times a waiter out. If it has a claim, the next one may get its try.
    pub(super) fn time_out(&mut self, key: WaiterKey, location: Location) {
        if self.dequeue(key, WaitResult::TimedOut) == Successor::ToBeWoken {
            P::wake_successor(self, location);
        }
    }

    /// Removes the waiter if it is this promise, and overdue. Returns its result then.
    pub(super) fn remove_overdue(&mut self, key: WaiterKey, outbox: &Arc<Outbox>, slot: u32) -> Option<WaitResult> {
        let record = self.lists.waiters.get(key).filter(|record| record.deadline == OVERDUE);
        let is_its = record.is_some_and(|record| record.listed.waiter.is_promise(outbox, slot));
        is_its.then(|| {
            // It has no claim, so no other waiter is concerned.
            let _ = self.unlist(key);
            if self.took_notification { WaitResult::Ok } else { WaitResult::TimedOut }
        })
    }

    /// Finds the first waiter that is not due. Those before it time out; the caller wakes the line's first claims.
    #[expect(clippy::inline_always, reason = "its two callers take 4 % less so")]
    #[inline(always)]
    pub(crate) fn expire_to_front(&mut self, location: Location) -> Option<WaiterKey> {
        loop {
            let key = self.lists.waiters.front(location)?;
            if !self.is_due(key) {
                return Some(key);
            }
            let _ = self.dequeue(key, WaitResult::TimedOut);
        }
    }

    pub(crate) fn listed(&self, key: WaiterKey) -> Option<&Listed<P::Claim>> {
        self.lists.waiters.get(key).map(|record| &record.listed)
    }

    /// Returns the request of the waiter with this key; `None` for one without a claim.
    pub(crate) fn claim(&self, key: WaiterKey) -> Option<P::Claim> {
        self.listed(key)?.claim
    }

    pub(crate) fn blocks(&self, key: WaiterKey) -> bool {
        self.listed(key).is_some_and(|listed| listed.waiter.blocks())
    }

    pub(crate) fn ticket(&self, key: WaiterKey) -> Ticket {
        Ticket { key, bucket: self.index as u16 }
    }

    pub(crate) fn untimed(&self, key: WaiterKey) -> Option<&Listed<P::Claim>> {
        if self.deadline(key) == Timestamp::NEVER { self.listed(key) } else { None }
    }

    pub(crate) fn waiters(&self, location: Location) -> impl Iterator<Item = WaiterKey> {
        let waiters = &self.lists.waiters;
        std::iter::successors(waiters.front(location), |&key| waiters.next(key))
    }

    /// Returns the waiters before this one, at the same location: the nearest first.
    pub(crate) fn before(&self, key: WaiterKey) -> impl Iterator<Item = WaiterKey> {
        std::iter::successors(self.lists.waiters.previous(key), |&key| self.lists.waiters.previous(key))
    }
}
