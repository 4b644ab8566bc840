//! The waiter lists of the process, sharded by address: the specification's agent-cluster-wide `WaiterListStore`.
//!
//! # One critical section
//! Everything that adds or removes a waiter does so inside a [`CriticalSection`], which holds the lock of the location's
//! bucket. Inside it, outcomes are *recorded* (in the blocked thread, or in the agent's outbox); the threads and agents
//! they concern are woken when it has been left.
//!
//! # Why a notification without waiters takes no lock
//! `Bucket::occupancy` counts the waiters of a bucket. A waiter raises it, then passes a `SeqCst` fence, then reads the
//! word. A notifier writes the word, then passes a `SeqCst` fence, then reads `occupancy`. In the single order of the two
//! fences one comes first: if the notifier's, the waiter reads the new value and does not wait; if the waiter's, the
//! notifier sees it counted and takes the lock. (The fence is needed because the program may have written the word
//! without an atomic operation.)

use crossbeam_utils::CachePadded;

use crate::clock::Timestamp;
use crate::location::Location;
use crate::outbox::{Outbox, Settlement};
use crate::parker::BlockedThread;
use crate::sync::{Arc, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, fence, lock};
use crate::waiter_list::{Waiter, WaiterKey, WaiterLists};

/// How a wait ended. The numbers are those that `lib/settle.js` knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum WaitResult {
    /// `"ok"`: it was notified.
    Ok = 0,
    /// `"not-equal"`: the word held another value, so it did not wait.
    NotEqual = 1,
    /// `"timed-out"`: its deadline came first.
    TimedOut = 2,
}

impl WaitResult {
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::NotEqual,
            _ => Self::TimedOut,
        }
    }
}

/// Who waits.
#[derive(Debug)]
pub enum Party {
    /// A thread blocked in `Atomics.wait`.
    Thread(Arc<BlockedThread>),
    /// A promise of `Atomics.waitAsync`: the agent that made it, and its number there.
    Agent(Arc<Outbox>, u32),
}

/// Who is to be woken once the critical section has been left.
enum Wake {
    Thread(Arc<BlockedThread>),
    Agent(Arc<Outbox>),
}

impl Wake {
    fn wake(&self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Agent(outbox) => outbox.ring(),
        }
    }
}

/// Where to find a waiter again. Only to be used with the party it was made for, which is how a key that has been given
/// to another waiter since is told from one that has not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    bucket: u32,
    key: WaiterKey,
}

/// The waiters of all locations whose addresses share a hash.
#[derive(Debug)]
struct Bucket {
    occupancy: AtomicUsize,
    earliest_deadline: AtomicU64,
    lists: Mutex<WaiterLists<Party>>,
}

impl Bucket {
    fn new() -> Self {
        Self {
            occupancy: AtomicUsize::new(0),
            earliest_deadline: AtomicU64::new(Timestamp::NEVER.as_nanos()),
            lists: Mutex::new(WaiterLists::default()),
        }
    }

    /// Runs `body` under the bucket's lock and then, without it, wakes whom it settled.
    fn critical_section<R>(&self, body: impl FnOnce(&mut CriticalSection<'_>) -> R) -> R {
        let mut section = CriticalSection { bucket: self, lists: lock(&self.lists), first: None, rest: Vec::new() };
        let result = body(&mut section);
        section.leave();
        result
    }
}

/// The right to add and to remove waiters of one bucket (the specification's `EnterCriticalSection` … `LeaveCriticalSection`).
struct CriticalSection<'a> {
    bucket: &'a Bucket,
    lists: MutexGuard<'a, WaiterLists<Party>>,
    // Most sections wake one party at most, so the first one needs no allocation.
    first: Option<Wake>,
    rest: Vec<Wake>,
}

impl CriticalSection<'_> {
    fn add(&mut self, location: Location, deadline: Timestamp, party: Party) -> WaiterKey {
        let indexed = matches!(party, Party::Agent(..));
        self.lists.push_back(location, deadline, indexed, party)
    }

    fn remove(&mut self, key: WaiterKey) -> Waiter<Party> {
        self.bucket.occupancy.fetch_sub(1, Ordering::SeqCst);
        self.lists.remove(key)
    }

    /// Records how a removed waiter's wait ended (invariant 2).
    fn settle(&mut self, waiter: Waiter<Party>, result: WaitResult) {
        let wake = match waiter.party {
            Party::Thread(thread) => {
                thread.settle(result);
                Wake::Thread(thread)
            }
            Party::Agent(outbox, slot) => {
                if !outbox.push(Settlement { slot, result }) {
                    return;
                }
                Wake::Agent(outbox)
            }
        };
        match self.first {
            None => self.first = Some(wake),
            Some(_) => self.rest.push(wake),
        }
    }

    fn leave(self) {
        let Self { bucket, lists, first, rest } = self;
        let earliest = lists.earliest_deadline().as_nanos();
        if bucket.earliest_deadline.load(Ordering::Relaxed) != earliest {
            // SeqCst: pairs with the timer thread's re-check, see `timer`.
            bucket.earliest_deadline.store(earliest, Ordering::SeqCst);
        }
        drop(lists);
        for wake in first.iter().chain(&rest) {
            wake.wake();
        }
    }
}

/// All waiters of a process (of a test, of a model). Any thread may call any method.
#[derive(Debug)]
pub struct WaiterListStore {
    buckets: Box<[CachePadded<Bucket>]>,
    now: fn() -> Timestamp,
}

impl WaiterListStore {
    /// How many waiters that are due are settled before others may enter their bucket.
    const EXPIRE_AT_ONCE: usize = 512;

    /// A store with `buckets` shards (a power of two) that tells the time by `now`.
    ///
    /// # Panics
    /// If `buckets` is not a power of two.
    pub fn new(buckets: usize, now: fn() -> Timestamp) -> Self {
        assert!(buckets.is_power_of_two());
        Self { buckets: (0..buckets).map(|_| CachePadded::new(Bucket::new())).collect(), now }
    }

    fn index_of(&self, location: Location) -> usize {
        // Fibonacci hashing: neighbouring words fall into buckets far apart.
        let hash = (location.address() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> 32) as usize & (self.buckets.len() - 1)
    }

    fn bucket_of(&self, location: Location) -> &Bucket {
        &self.buckets[self.index_of(location)]
    }

    /// Appends a waiter if `is_equal` says, in the same critical section, that the word still holds the expected value
    /// (invariant 3).
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 2^32 buckets")]
    fn enqueue(
        &self,
        location: Location,
        deadline: Timestamp,
        is_equal: impl FnOnce() -> bool,
        party: impl FnOnce() -> Party,
    ) -> Option<Ticket> {
        let index = self.index_of(location);
        let bucket = &self.buckets[index];
        bucket.critical_section(|section| {
            bucket.occupancy.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if !is_equal() {
                bucket.occupancy.fetch_sub(1, Ordering::SeqCst);
                return None;
            }
            let key = section.add(location, deadline, party());
            Some(Ticket { bucket: index as u32, key })
        })
    }

    /// Lines up `thread`, the calling one, at `location`. `None`: the word does not hold the expected value.
    ///
    /// The thread then calls [`Self::park`] until it gives a result.
    pub fn enqueue_thread(
        &self,
        location: Location,
        thread: &Arc<BlockedThread>,
        deadline: Timestamp,
        is_equal: impl FnOnce() -> bool,
    ) -> Option<Ticket> {
        self.enqueue(location, deadline, is_equal, || {
            thread.reset();
            Party::Thread(Arc::clone(thread))
        })
    }

    /// Lines up a promise at `location`: `slot` of the agent that `outbox` belongs to.
    /// `None`: the word does not hold the expected value.
    pub fn enqueue_agent(
        &self,
        location: Location,
        outbox: &Arc<Outbox>,
        slot: u32,
        deadline: Timestamp,
        is_equal: impl FnOnce() -> bool,
    ) -> Option<Ticket> {
        self.enqueue(location, deadline, is_equal, || Party::Agent(Arc::clone(outbox), slot))
    }

    /// Blocks `thread`, the calling one, until its wait is over (a result) or `until` has come (`None`: it still waits).
    pub fn park(
        &self,
        ticket: Ticket,
        thread: &Arc<BlockedThread>,
        deadline: Timestamp,
        until: Timestamp,
    ) -> Option<WaitResult> {
        let outcome = thread.park_until(deadline.min(until));
        if outcome.is_some() {
            return outcome;
        }
        ((self.now)() >= deadline).then(|| self.withdraw_thread(ticket, thread))
    }

    /// Ends the wait of `thread`, the calling one: timed out, unless it was settled before.
    pub fn withdraw_thread(&self, ticket: Ticket, thread: &Arc<BlockedThread>) -> WaitResult {
        self.buckets[ticket.bucket as usize].critical_section(|section| {
            // Under the lock an outcome is final: who removed the waiter recorded it in the same critical section.
            thread.outcome().unwrap_or_else(|| {
                section.remove(ticket.key);
                thread.settle(WaitResult::TimedOut);
                WaitResult::TimedOut
            })
        })
    }

    /// Takes a promise out of the line. False if it is settled already: then its outcome is in the outbox.
    pub fn withdraw_agent(&self, ticket: Ticket, outbox: &Arc<Outbox>, slot: u32) -> bool {
        self.buckets[ticket.bucket as usize].critical_section(|section| {
            let waits = section.lists.get(ticket.key).is_some_and(
                |waiter| matches!(&waiter.party, Party::Agent(agent, number) if *number == slot && Arc::ptr_eq(agent, outbox)),
            );
            if waits {
                section.remove(ticket.key);
            }
            waits
        })
    }

    /// Wakes up to `count` waiters at `location`, those first that came first, and gives their number.
    ///
    /// A waiter whose deadline has passed is timed out on the way and not counted, even if neither the timer nor its own
    /// thread has come to it yet.
    pub fn notify(&self, location: Location, count: usize) -> usize {
        fence(Ordering::SeqCst);
        let bucket = self.bucket_of(location);
        if bucket.occupancy.load(Ordering::SeqCst) == 0 || count == 0 {
            return 0;
        }
        bucket.critical_section(|section| {
            let mut now = None;
            let mut woken = 0;
            while woken < count
                && let Some(key) = section.lists.front(location)
            {
                let waiter = section.remove(key);
                let due =
                    waiter.deadline != Timestamp::NEVER && waiter.deadline <= *now.get_or_insert_with(|| (self.now)());
                if due {
                    section.settle(waiter, WaitResult::TimedOut);
                } else {
                    section.settle(waiter, WaitResult::Ok);
                    woken += 1;
                }
            }
            woken
        })
    }

    /// Times out the promises that are due, and gives the earliest deadline of the others.
    pub fn expire(&self) -> Timestamp {
        let now = (self.now)();
        for bucket in &self.buckets {
            while bucket.earliest_deadline.load(Ordering::SeqCst) <= now.as_nanos() {
                bucket.critical_section(|section| {
                    for _ in 0..Self::EXPIRE_AT_ONCE {
                        let Some(waiter) = section.lists.pop_due(now) else { return };
                        section.bucket.occupancy.fetch_sub(1, Ordering::SeqCst);
                        section.settle(waiter, WaitResult::TimedOut);
                    }
                });
            }
        }
        self.earliest_deadline()
    }

    /// The earliest deadline of all promises.
    pub fn earliest_deadline(&self) -> Timestamp {
        let nanos = self.buckets.iter().map(|bucket| bucket.earliest_deadline.load(Ordering::SeqCst)).min();
        nanos.map_or(Timestamp::NEVER, Timestamp::from_nanos)
    }

    /// How many wait at `location`, blocked threads and promises.
    pub fn count(&self, location: Location) -> u32 {
        lock(&self.bucket_of(location).lists).count(location)
    }
}
