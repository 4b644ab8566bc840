//! All waiters of the process, sharded by address (the specification's agent-cluster-wide `WaiterListStore`).

use std::ops::Range;

use crossbeam_utils::CachePadded;

use super::counters::{self, Counters};
use super::critical_section::Bucket;
use super::location::CACHE_LINE;
use super::other_processes;
use super::outbox::Outbox;
use super::waiter::{Waiter, Wakes};
use super::{
    BlockedThread, CriticalSection, Listed, Location, Policy, Settlement, Successor, Ticket, WaitResult, WaiterKey,
    Woken,
};
use crate::clock::Timestamp;
use crate::sync::{Arc, AtomicI32, AtomicU64, Ordering, fence};

/// All waiters of a process (of a test, of a model). Any thread may call any method.
#[derive(Debug)]
pub struct WaiterListStore<P: Policy> {
    pub(crate) buckets: Box<[CachePadded<Bucket<P>>]>,
    /// They are apart from the buckets because JavaScript reads them.
    pub(crate) counters: Counters,
    now: fn() -> Timestamp,
}

impl<P: Policy> WaiterListStore<P> {
    /// How many waiters that are due are settled before other threads may enter their bucket.
    const EXPIRE_AT_ONCE: usize = 512;

    /// Makes a store of `buckets` shards. Their number is a power of two, up to 2^10; `now` is the clock.
    pub fn new(buckets: usize, now: fn() -> Timestamp) -> Self {
        assert!(buckets.is_power_of_two() && buckets <= 1 << 10);
        let counters = Counters::new(buckets);
        Self { buckets: (0..buckets).map(|_| CachePadded::default()).collect(), counters, now }
    }

    /// Returns the counters that JavaScript reads: of waiters, and then the policy's.
    pub fn counters(&self) -> &[AtomicI32] {
        self.counters.all()
    }

    /// Returns the counter of the waiters at `location`, and at few others.
    pub fn counter(&self, location: Location) -> &AtomicI32 {
        self.counters.of_word(location)
    }

    /// Returns the index of the location's bucket, which its cache line decides.
    pub fn index_of(&self, location: Location) -> usize {
        // Far apart for neighbouring lines (Fibonacci hashing).
        let hash = ((location.address() / CACHE_LINE) as u32).wrapping_mul(0x9E37_79B1);
        ((u64::from(hash) * self.buckets.len() as u64) >> 32) as usize
    }

    /// Returns the buckets of the locations at these addresses. One may come twice, if there are few.
    pub(crate) fn buckets_of(&self, addresses: &Range<usize>) -> impl Iterator<Item = usize> {
        let lines = addresses.start / CACHE_LINE..addresses.end.div_ceil(CACHE_LINE);
        let (lines, all) = if lines.len() < self.buckets.len() { (lines, 0) } else { (0..0, self.buckets.len()) };
        lines.map(|line| self.index_of(Location::from_address(line * CACHE_LINE))).chain(0..all)
    }

    pub(crate) fn critical_section<'a, R>(
        &'a self,
        index: usize,
        body: impl FnOnce(&mut CriticalSection<'a, P>) -> R,
    ) -> R {
        body(&mut CriticalSection::enter(&self.buckets[index], index, &self.counters, self.now))
    }

    pub(crate) fn critical_section_at<'a, R>(
        &'a self,
        location: Location,
        body: impl FnOnce(&mut CriticalSection<'a, P>) -> R,
    ) -> R {
        self.critical_section(self.index_of(location), body)
    }

    /// Runs `body` in a critical section. The waiters are woken when the second result is dropped.
    pub(crate) fn critical_section_and_wakes<'a, R>(
        &'a self,
        location: Location,
        body: impl FnOnce(&mut CriticalSection<'a, P>) -> R,
    ) -> (R, Wakes) {
        self.critical_section_at(location, |section| {
            let result = body(section);
            (result, std::mem::take(&mut section.wakes))
        })
    }

    /// Runs `body` on the waiter of this ticket, unless it is settled.
    pub(crate) fn with_waiter<R>(
        &self,
        ticket: Ticket,
        waiter: &Waiter,
        body: impl FnOnce(&mut CriticalSection<'_, P>, WaiterKey, Location) -> R,
    ) -> Option<R> {
        self.critical_section(usize::from(ticket.bucket), |section| {
            let record = section.lists.waiters.get(ticket.key)?;
            let location = record.location;
            let waits = record.listed.waiter.is(waiter)
                // A thread uses one record for all its waits. Its result says whether this one has ended.
                && !matches!(waiter, Waiter::Thread(thread) if thread.result().is_some());
            waits.then(|| body(section, ticket.key, location))
        })
    }

    /// Appends a waiter if the word holds the expected value (invariant 3); `None`: it holds another. A thread, which
    /// must be the calling one, then calls [`Self::park`] until that gives a result.
    pub fn enqueue(
        &self,
        location: Location,
        waiter: Waiter,
        deadline: Timestamp,
        is_equal: impl FnOnce() -> bool,
    ) -> Option<Ticket> {
        let listed = Listed { waiter, claim: None };
        self.critical_section_at(location, |section| section.append(location, listed, deadline, |_| is_equal()))
    }

    /// Blocks the calling thread until its result, a retry, or `until`.
    pub fn park(&self, ticket: Ticket, thread: &Arc<BlockedThread>, deadline: Timestamp, until: Timestamp) -> Woken {
        match thread.park_until(deadline.min(until)) {
            Woken::TimeOver if (self.now)() >= deadline => Woken::Settled(self.withdraw_thread(ticket, thread)),
            woken => woken,
        }
    }

    /// Ends the wait of `thread`, the calling one: it times out, unless it is settled already.
    pub fn withdraw_thread(&self, ticket: Ticket, thread: &Arc<BlockedThread>) -> WaitResult {
        self.with_waiter(ticket, &Waiter::Thread(Arc::clone(thread)), |section, key, location| {
            section.time_out(key, location);
        });
        // Final, since the thread that removed the waiter recorded its result in the same critical section.
        thread.result().unwrap_or(WaitResult::TimedOut)
    }

    /// Removes a promise from its list. `Settled`: its result is in the outbox.
    pub fn withdraw_agent(&self, ticket: Ticket, outbox: &Arc<Outbox>, slot: u32) -> Withdrawal {
        let waiter = Waiter::Agent(Arc::clone(outbox), slot);
        let withdrawn = self.with_waiter(ticket, &waiter, |section, key, location| {
            let (successor, is_done) = section.give_up(key);
            if successor == Successor::ToBeWoken {
                P::wake_successor(section, location);
            }
            is_done
        });
        if withdrawn == Some(true) { Withdrawal::Done } else { Withdrawal::Settled }
    }

    /// Wakes up to `count` waiters at `location`, first come, first served; returns their number.
    ///
    /// A claim is woken to retry: so the line hears of a thread that unlocks the word by means of `Atomics.notify`.
    ///
    /// `runs`: the agent that notifies. Its own promises can be notified until a job of it has timed them out. Those of
    /// other agents time out here once their deadlines have passed.
    pub fn notify<'a>(&'a self, location: Location, count: usize, runs: Option<&'a Arc<Outbox>>) -> usize {
        if count == 0 {
            return 0;
        }
        if let Some(others) = other_processes::at(location) {
            // Behind the program's plain write, as in `counters`: a waiter is counted before it reads the word.
            fence(Ordering::SeqCst);
            if let Some(waits) = others.waits_at(location, false) {
                return waits.notify(count, &mut |count| self.notify_here(location, count, runs));
            }
        }
        self.notify_here(location, count, runs)
    }

    fn notify_here<'a>(&'a self, location: Location, count: usize, runs: Option<&'a Arc<Outbox>>) -> usize {
        if counters::is_zero(self.counter(location)) {
            return 0;
        }
        self.critical_section_at(location, |section| {
            section.runs = runs;
            section.deliver(location);
            section.notify(location, count)
        })
    }

    /// Wakes the waiters at `location` that other processes have notified.
    pub fn deliver(&self, location: Location) {
        self.critical_section_at(location, |section| section.deliver(location));
    }

    /// Times out due claims, rings agents of due promises, returns the deadline.
    pub fn expire(&self) -> Timestamp {
        let now = (self.now)();
        for (index, bucket) in self.buckets.iter().enumerate() {
            while bucket.earliest_deadline.load(Ordering::SeqCst) <= now.as_nanos() {
                self.critical_section(index, |section| {
                    for _ in 0..Self::EXPIRE_AT_ONCE {
                        let Some((key, location)) = section.lists.waiters.due(now) else { return };
                        section.expire(key, location);
                    }
                });
            }
        }
        self.earliest_deadline()
    }

    /// Decides the timeouts of an agent's promises, in a job of it: those of `settlements` that are [`WaitResult::Due`]
    /// become timeouts. Those whose waits have ended otherwise meanwhile are left out. `ticket` gives that of a slot.
    pub fn decide(
        &self,
        outbox: &Arc<Outbox>,
        settlements: &mut Vec<Settlement>,
        ticket: impl Fn(u32) -> Option<Ticket>,
    ) {
        settlements.retain_mut(|Settlement { slot, result }| {
            if *result != WaitResult::Due {
                return true;
            }
            let decided = ticket(*slot).and_then(|Ticket { key, bucket }| {
                self.critical_section(usize::from(bucket), |section| section.remove_overdue(key, outbox, *slot))
            });
            *result = decided.unwrap_or(*result);
            decided.is_some()
        });
    }

    /// Returns the earliest deadline of all promises and their claims.
    pub fn earliest_deadline(&self) -> Timestamp {
        let deadlines = self.buckets.iter().map(|bucket| bucket.earliest_deadline.load(Ordering::SeqCst));
        Timestamp::from_nanos(deadlines.fold(Timestamp::NEVER.as_nanos(), u64::min))
    }

    /// Returns the number of waiters at `location`, blocked threads and promises.
    pub fn count(&self, location: Location) -> u32 {
        self.critical_section_at(location, |section| section.lists.waiters.count(location))
    }
}

/// The outcome of removing a promise from its list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Withdrawal {
    /// It has left its list without a result.
    Done,
    /// It was settled before; the result is in the outbox.
    Settled,
}

/// The service's next deadline, agreed with the threads that append promises.
///
/// # Why no deadline is missed
/// A registering thread stores its bucket's earliest deadline (in the critical section that appends the waiter), then
/// reads the alarm, and rings if the alarm is set to a later moment than its own deadline. The service sets the alarm,
/// then reads the buckets' earliest deadlines again before it sleeps. All four accesses are `SeqCst`, so in their
/// single order one of the two stores comes first, and the thread that stores second reads the other's store: the
/// service does not sleep, or it is rung.
///
/// A thread whose deadline is not its bucket's earliest stores nothing; the thread that stored the earlier one rings.
#[derive(Debug)]
pub struct Alarm(AtomicU64);

impl Default for Alarm {
    fn default() -> Self {
        Self(AtomicU64::new(Timestamp::NEVER.as_nanos()))
    }
}

impl Alarm {
    /// Times out the due promises of `store`. Returns until when the service may sleep, unless it is rung before.
    pub fn set<P: Policy>(&self, store: &WaiterListStore<P>) -> Timestamp {
        loop {
            let next = store.expire();
            self.0.store(next.as_nanos(), Ordering::SeqCst);
            if store.earliest_deadline() >= next {
                return next;
            }
        }
    }

    /// Whether a thread that appended a promise with this deadline must ring.
    pub fn is_later_than(&self, deadline: Timestamp) -> bool {
        deadline.as_nanos() < self.0.load(Ordering::SeqCst)
    }
}
