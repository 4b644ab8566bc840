//! The right to add and remove waiters of one bucket (the specification's `EnterCriticalSection` … `LeaveCriticalSection`).
//!
//! Inside a critical section results are *recorded*: in the blocked thread, or in the agent's outbox. The threads and agents
//! concerned are woken when it is dropped (invariant 5).

use super::bucket::{Bucket, Lists, Other, Packed, Ticket};
use super::counters::{Counted, Counters};
use super::location::Location;
use super::outbox::{Outbox, Ring};
use super::policy::{Claims, ListedClaim, Successor};
use super::result::WaitResult;
use super::waiter::{Waiter, Wake, Wakes};
use super::waiter_list::{Record, WaiterKey};
use crate::clock::{Timestamp, unfailing};
use crate::sync::{Arc, AtomicI32, MutexGuard, Ordering, lock};

/// When waiters with claims are woken. The queue calls these functions inside a critical section.
pub trait Policy: Claims {
    /// Wakes the first waiter at `location` that can make use of what the word holds.
    fn wake_successor(section: &mut CriticalSection<'_, Self>, location: Location);

    /// A notification wakes the claim with this key, which is the first at `location`, so that it retries. One notification
    /// wakes no other claim.
    fn notify_claim(section: &mut CriticalSection<'_, Self>, location: Location, key: WaiterKey);

    /// The first waiter without a claim at `location`, where a claim is the first of all waiters.
    fn first_without_claim(section: &mut CriticalSection<'_, Self>, location: Location) -> Option<WaiterKey>;
}

/// A waiter in a list, and what it asks for.
type Listed<P> = (Waiter<<P as Claims>::Grant>, Option<<P as Claims>::Claim>);

/// The lock of one bucket, held.
///
/// It ends when this is dropped, also by a panic: then, too, the bucket's earliest deadline is published, and the waiters whose
/// results have been recorded are woken, with no lock held (fields are dropped in their order).
pub struct CriticalSection<'a, P: Policy> {
    bucket: &'a Bucket<P>,
    index: usize,
    counters: &'a Counters,
    clock: fn() -> Timestamp,
    pub(super) lists: MutexGuard<'a, Lists<P>>,
    now: Option<Timestamp>,
    /// The agent that runs this. Its own promises do not time out meanwhile, even if their deadlines have passed.
    pub(super) runs: Option<&'a Arc<Outbox<P::Grant>>>,
    wakes: Wakes<P::Grant>,
}

impl<P: Policy> Drop for CriticalSection<'_, P> {
    fn drop(&mut self) {
        self.bucket.publish_deadline(self.lists.waiters.earliest_deadline());
    }
}

impl<'a, P: Policy> CriticalSection<'a, P> {
    /// Locks `bucket`, which is the one with this index.
    pub(super) fn enter(bucket: &'a Bucket<P>, index: usize, counters: &'a Counters, clock: fn() -> Timestamp) -> Self {
        let lists = lock(&bucket.lists);
        Self { bucket, index, counters, clock, lists, now: None, runs: None, wakes: Wakes::default() }
    }

    /// Leaves it to the caller to wake the waiters whose results have been recorded, after the section.
    pub(super) fn take_wakes(&mut self) -> Wakes<P::Grant> {
        std::mem::take(&mut self.wakes)
    }

    /// The present moment, looked up once per section.
    pub(crate) fn now(&mut self) -> Timestamp {
        *self.now.get_or_insert_with(|| unfailing(self.clock))
    }

    /// What the policy keeps for this bucket, to change.
    pub(crate) fn policy_mut(&mut self) -> &mut P {
        &mut self.lists.policy
    }

    /// What the policy keeps for this bucket.
    pub(crate) fn policy(&self) -> &P {
        &self.lists.policy
    }

    /// The policy counts one more at `location`, or one less.
    pub(crate) fn count_for_policy(&self, location: Location, change: i32) {
        self.counters.count(location, change);
    }

    fn counter(&self, location: Location) -> &'a AtomicI32 {
        self.counters.of_word(location)
    }

    /// Appends a waiter if `is_equal`, asked after it has been counted, says so (invariant 3).
    pub(super) fn append(
        &mut self,
        location: Location,
        deadline: Timestamp,
        is_equal: impl FnOnce(&mut Self) -> bool,
        packed: impl FnOnce(&mut Lists<P>) -> Packed,
    ) -> Option<Ticket> {
        let counted = Counted::new(self.counter(location));
        if !is_equal(self) {
            return None;
        }
        let packed = packed(&mut self.lists);
        let key = self.lists.waiters.push_back(location, deadline, packed);
        counted.keep();
        Some(self.ticket(key))
    }

    /// Appends a claim if `waits`, asked after it has been counted, says so.
    pub(crate) fn append_claim(
        &mut self,
        location: Location,
        waiter: Waiter<P::Grant>,
        claim: P::Claim,
        deadline: Timestamp,
        waits: impl FnOnce(&mut Self) -> bool,
    ) -> Option<Ticket> {
        let blocks = waiter.blocks();
        let indexed = if blocks { Timestamp::NEVER } else { deadline };
        let other = |lists: &mut Lists<P>| lists.insert_other(Other { waiter, claim: Some(claim), deadline });
        let ticket = self.append(location, indexed, waits, other)?;
        let (key, predecessor) = (ticket.key, self.lists.waiters.previous(ticket.key));
        self.bucket.has_claims.store(true, Ordering::Relaxed);
        self.lists.policy.claim_appended(&ListedClaim { location, key, predecessor, claim, blocks });
        Some(ticket)
    }

    fn take_record(&mut self, key: WaiterKey) -> Record<Packed> {
        let record = self.lists.waiters.remove(key);
        self.uncount(record.location);
        record
    }

    fn uncount(&self, location: Location) {
        self.counter(location).fetch_sub(1, Ordering::SeqCst);
    }

    /// The rest of a thread's or claim's removal.
    fn take_other(&mut self, key: WaiterKey, record: &Record<Packed>, other: u32) -> (Other<P>, Successor) {
        let other = self.lists.remove_other(other);
        let (location, blocks) = (record.location, other.waiter.blocks());
        let policy = &mut self.lists.policy;
        let Some(claim) = other.claim else {
            policy.thread_removed(location, key);
            return (other, Successor::Unconcerned);
        };
        let predecessor = record.predecessor();
        let successor = policy.claim_removed(&ListedClaim { location, key, predecessor, claim, blocks });
        if policy.is_empty() {
            self.bucket.has_claims.store(false, Ordering::Relaxed);
        }
        (other, successor)
    }

    /// Removes a waiter from its list without a result.
    pub(crate) fn remove(&mut self, key: WaiterKey) -> Successor {
        let record = self.take_record(key);
        match record.waiter {
            Packed::Promise { outbox, .. } => {
                self.lists.outboxes.subtract(outbox, |_| ());
                Successor::Unconcerned
            }
            Packed::Other(other) => self.take_other(key, &record, other).1,
        }
    }

    /// Removes a waiter from its list and records its result (invariant 2).
    pub(crate) fn dequeue(&mut self, key: WaiterKey, result: WaitResult) -> Successor {
        let record = self.take_record(key);
        match record.waiter {
            Packed::Promise { outbox, slot } => {
                self.settle_promise(outbox, slot, result);
                Successor::Unconcerned
            }
            Packed::Other(other) => {
                let (Other { waiter, .. }, successor) = self.take_other(key, &record, other);
                self.settle(waiter, result, None);
                successor
            }
        }
    }

    /// Removes a claim from its list and records that it has been granted. `grant`: what its agent is told, given the waiter.
    pub(crate) fn dequeue_granted(
        &mut self,
        key: WaiterKey,
        result: WaitResult,
        grant: impl FnOnce(&mut Self, &Waiter<P::Grant>, P::Claim) -> P::Grant,
    ) {
        let record = self.take_record(key);
        let Packed::Other(other) = record.waiter else { unreachable!("only claims are granted") };
        let (Other { waiter, claim, .. }, successor) = self.take_other(key, &record, other);
        successor.is_woken_by_caller();
        let grant = claim.map(|claim| grant(self, &waiter, claim));
        self.settle(waiter, result, grant);
    }

    fn settle(&mut self, waiter: Waiter<P::Grant>, result: WaitResult, grant: Option<P::Grant>) {
        match waiter {
            Waiter::Thread(thread) => {
                thread.settle(result);
                self.wakes.push(Wake::Thread(thread));
            }
            Waiter::Agent(outbox, slot) => {
                let ring = match grant {
                    None => outbox.settle(slot, result),
                    Some(grant) => outbox.grant(slot, result, grant),
                };
                if ring == Ring::Needed {
                    self.wakes.push(Wake::Agent(outbox));
                }
            }
        }
    }

    /// Records the result of a promise that has been removed.
    fn settle_promise(&mut self, outbox: u32, slot: u32, result: WaitResult) {
        let rung = self.lists.outboxes.subtract(outbox, |outbox| match outbox.settle(slot, result) {
            Ring::Needed => Some(Arc::clone(outbox)),
            Ring::UnderWay => None,
        });
        if let Some(outbox) = rung {
            self.wakes.push(Wake::Agent(outbox));
        }
    }

    /// Wakes a claim, which stays in its list, so that it retries; unless `begins`, given whether it is a blocked thread's, says
    /// that it is awake already.
    pub(crate) fn wake_to_retry(&mut self, key: WaiterKey, begins: impl FnOnce(&mut P, bool) -> bool) {
        let Some(waiter) = self.lists.other(key).map(|other| other.waiter.clone()) else { return };
        if !begins(&mut self.lists.policy, waiter.blocks()) {
            return;
        }
        match waiter {
            Waiter::Thread(thread) => {
                thread.retry();
                self.wakes.push(Wake::Thread(thread));
            }
            Waiter::Agent(outbox, slot) => {
                if outbox.retry(slot) == Ring::Needed {
                    self.wakes.push(Wake::Agent(outbox));
                }
            }
        }
    }

    /// Notifies the first waiter at `location` if it is a promise without a time-out, as most are. The number of waiters
    /// notified, and the first waiter then. The general way looks up three times what is looked up once here.
    pub(super) fn notify_first_promise(&mut self, location: Location) -> (usize, Option<WaiterKey>) {
        let is_promise = |packed: &Packed| matches!(packed, Packed::Promise { .. });
        let Some((first, next)) = self.lists.waiters.pop_front_if(location, is_promise) else {
            return (0, self.lists.waiters.front(location));
        };
        self.uncount(location);
        if let Packed::Promise { outbox, slot } = first {
            self.settle_promise(outbox, slot, WaitResult::Ok);
        }
        (1, next)
    }

    /// Whether a waiter's deadline has passed: then it takes nothing any more, even if neither the service nor its own
    /// thread has timed it out yet. A promise of the agent that runs this does.
    pub(crate) fn is_due(&mut self, key: WaiterKey) -> bool {
        match self.lists.deadline(key) {
            Timestamp::NEVER => false,
            deadline => {
                deadline <= self.now() && !self.runs.is_some_and(|outbox| self.lists.is_promise_of(outbox, key))
            }
        }
    }

    /// The deadline of a waiter has come. A claim times out; a promise stays in its list until its agent decides.
    pub(super) fn expire(&mut self, key: WaiterKey, location: Location) {
        let Some(&Packed::Promise { outbox, slot }) = self.lists.packed(key) else {
            self.time_out(key, location);
            return;
        };
        self.lists.waiters.mark_overdue(key);
        let outbox = self.lists.outboxes.get(outbox);
        if outbox.settle(slot, WaitResult::Due) == Ring::Needed {
            let outbox = Arc::clone(outbox);
            self.wakes.push(Wake::Agent(outbox));
        }
    }

    /// A waiter times out. If it has a claim, the next one may get its try.
    pub(super) fn time_out(&mut self, key: WaiterKey, location: Location) {
        if self.dequeue(key, WaitResult::TimedOut) == Successor::ToBeWoken {
            P::wake_successor(self, location);
        }
    }

    /// Removes the waiter with this key if it is the promise in this slot of an agent, and overdue. Whether it was.
    pub(super) fn remove_overdue(&mut self, key: WaiterKey, outbox: &Arc<Outbox<P::Grant>>, slot: u32) -> bool {
        let Some(record) = self.lists.waiters.get(key).filter(|record| record.is_overdue()) else { return false };
        let Packed::Promise { outbox: its, slot: its_slot } = record.waiter else { return false };
        let is_its = its_slot == slot && Arc::ptr_eq(self.lists.outboxes.get(its), outbox);
        if is_its {
            self.remove(key).is_woken_by_caller();
        }
        is_its
    }

    /// The first waiter at `location` that is not due. Those before it time out; the caller wakes the line's first claims.
    #[expect(clippy::inline_always, reason = "its two callers take 4 % less so")]
    #[inline(always)]
    pub(crate) fn front(&mut self, location: Location) -> Option<WaiterKey> {
        loop {
            let key = self.lists.waiters.front(location)?;
            if !self.is_due(key) {
                return Some(key);
            }
            self.dequeue(key, WaitResult::TimedOut).is_woken_by_caller();
        }
    }

    /// What the waiter with this key asks for; `None` for one without a claim.
    pub(crate) fn claim(&self, key: WaiterKey) -> Option<P::Claim> {
        self.lists.other(key)?.claim
    }

    /// Whether the waiter with this key is a blocked thread.
    pub(crate) fn blocks(&self, key: WaiterKey) -> bool {
        self.lists.other(key).is_some_and(|other| other.waiter.blocks())
    }

    /// The waiter with this key, and what it asks for.
    pub(crate) fn listed(&self, key: WaiterKey) -> Option<Listed<P>> {
        match *self.lists.packed(key)? {
            Packed::Promise { outbox, slot } => {
                Some((Waiter::Agent(Arc::clone(self.lists.outboxes.get(outbox)), slot), None))
            }
            Packed::Other(_) => self.lists.other(key).map(|other| (other.waiter.clone(), other.claim)),
        }
    }

    /// What finds the waiter with this key again.
    #[expect(clippy::cast_possible_truncation, reason = "there are no more than 2^16 buckets")]
    pub(crate) fn ticket(&self, key: WaiterKey) -> Ticket {
        Ticket { key, bucket: self.index as u16 }
    }

    /// The same, if it has no time-out.
    pub(crate) fn untimed(&self, key: WaiterKey) -> Option<Listed<P>> {
        if self.lists.deadline(key) == Timestamp::NEVER { self.listed(key) } else { None }
    }

    /// The locations that have waiters.
    pub(crate) fn locations(&self) -> Vec<Location> {
        self.lists.waiters.locations()
    }

    /// The waiters at `location`, in their order.
    pub(crate) fn waiters(&self, location: Location) -> impl Iterator<Item = WaiterKey> {
        let waiters = &self.lists.waiters;
        std::iter::successors(waiters.front(location), |&key| waiters.next(key))
    }

    /// The waiter after the one with this key.
    pub(crate) fn next(&self, key: WaiterKey) -> Option<WaiterKey> {
        self.lists.waiters.next(key)
    }

    /// The waiters before the one with this key, at the same location: the nearest first.
    pub(crate) fn before(&self, key: WaiterKey) -> impl Iterator<Item = WaiterKey> {
        std::iter::successors(self.lists.waiters.previous(key), |&key| self.lists.waiters.previous(key))
    }

    /// The number of waiters at `location`.
    pub(crate) fn count(&self, location: Location) -> u32 {
        self.lists.waiters.count(location)
    }
}
