//! The waiter lists of the process, sharded by address: the specification's agent-cluster-wide `WaiterListStore`.
//!
//! # One critical section
//! Everything that adds or removes a waiter does so inside a [`CriticalSection`], which holds the lock of the location's
//! bucket. Inside it, outcomes are *recorded* (in the blocked thread, or in the agent's outbox); the threads and agents
//! they concern are woken when it has been left.
//!
//! # Why a notification without waiters takes no lock
//! A counter, shared by the words of one hash, counts those who wait at them. A waiter raises it, then passes a `SeqCst`
//! fence, then reads the word. A notifier writes the word, then passes a `SeqCst` fence, then reads the counter. In the single
//! order of the two fences one comes first: if the notifier's, the waiter reads the new value and does not wait; if the
//! waiter's, the notifier sees it counted and takes the lock. (The fence is needed because the program may have written the
//! word without an atomic operation.)
//!
//! Who reads that somebody is counted needs no fence, for then the lock is taken: a waiter that had it before stands in the
//! list, and one that has it afterwards reads the new value.
//!
//! # What the words of a cache line share
//! A bucket: threads that use them contend for that line anyway, and whoever goes through neighbouring words finds what they
//! need in the caches. Not a counter: often a lock stands beside a word that somebody waits for all the time, and giving the
//! lock back must not take a call for that. But a cache line of counters, one for each of the words.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crossbeam_utils::CachePadded;
use rustc_hash::FxBuildHasher;
use slab::Slab;

use crate::clock::Timestamp;
use crate::lock::line::{Line, Request, UNLOCKED};
use crate::queue::location::{CACHE_LINE, Location, Word};
use crate::queue::outbox::{Outbox, Settlement};
use crate::queue::parker::{BlockedThread, Woken};
use crate::queue::waiter_list::{RETAINED_CAPACITY, Waiter, WaiterKey, WaiterLists};
use crate::sync::{Arc, AtomicBool, AtomicI32, AtomicU64, Mutex, MutexGuard, Ordering, fence, lock};

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
    // 3 is the binding's word for "still waiting".
    /// A claim has what it asked for.
    Acquired = 4,
    /// The same, and who held it before died.
    AcquiredFromDead = 5,
    // 6 and 7 are the binding's words for why an operation failed.
    /// Not the end of a wait yet: the deadline of a promise has come, and a job of its agent is to decide what that means
    /// ([`WaiterListStore::decide`]). JavaScript never sees it.
    Due = 8,
}

impl WaitResult {
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::NotEqual,
            2 => Self::TimedOut,
            4 => Self::Acquired,
            _ => Self::AcquiredFromDead,
        }
    }

    /// Whether it says that a claim has what it asked for.
    pub fn is_acquired(self) -> bool {
        matches!(self, Self::Acquired | Self::AcquiredFromDead)
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

impl Party {
    fn blocks(&self) -> bool {
        matches!(self, Self::Thread(_))
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Thread(a), Self::Thread(b)) => Arc::ptr_eq(a, b),
            (Self::Agent(a, m), Self::Agent(b, n)) => m == n && Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Clone for Party {
    fn clone(&self) -> Self {
        match self {
            Self::Thread(thread) => Self::Thread(Arc::clone(thread)),
            Self::Agent(outbox, slot) => Self::Agent(Arc::clone(outbox), *slot),
        }
    }
}

/// Who stands in a list. As small as can be, for there may be a million promises.
#[derive(Debug)]
enum Entrant {
    /// A promise that waits to be notified: its agent, by its key in [`Agents`], and its number there.
    Promise { agent: u32, slot: u32 },
    /// Anybody else, by the key in [`Lists::others`].
    Other(u32),
}

const _: () = assert!(size_of::<Option<Waiter<Entrant>>>() <= 32);

/// A blocked thread, or a claim.
#[derive(Debug)]
struct Other {
    party: Party,
    /// What it asks for, if it is a claim (see `line`).
    request: Option<Request>,
    deadline: Timestamp,
}

/// The agents whose promises wait in a bucket: each once, however many those are.
#[derive(Debug, Default)]
struct Agents {
    waiting: Slab<Waiting>,
    /// Who came last, and often comes again.
    last: usize,
    /// By [`Agents::id`], the keys of all, from when there were more than [`Self::FEW`] until there are none. Finding one of
    /// few takes no longer without it.
    keys: HashMap<usize, usize, FxBuildHasher>,
}

/// One of [`Agents`], and how many promises of it wait.
#[derive(Debug)]
struct Waiting {
    outbox: Arc<Outbox>,
    promises: u32,
}

impl Agents {
    const FEW: usize = 8;

    /// What tells this outbox from all others as long as it exists.
    fn id(outbox: &Arc<Outbox>) -> usize {
        Arc::as_ptr(outbox).addr()
    }

    /// One more promise of the agent with this outbox. The agent's key as long as one of its promises waits.
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 2^32 agents")]
    fn enter(&mut self, outbox: &Arc<Outbox>) -> u32 {
        if !self.waiting.get(self.last).is_some_and(|waiting| Arc::ptr_eq(&waiting.outbox, outbox)) {
            self.last = self.find(outbox).unwrap_or_else(|| self.insert(outbox));
        }
        self.waiting[self.last].promises += 1;
        self.last as u32
    }

    fn find(&self, outbox: &Arc<Outbox>) -> Option<usize> {
        if !self.keys.is_empty() {
            return self.keys.get(&Self::id(outbox)).copied();
        }
        let mut all = self.waiting.iter();
        all.find(|(_, waiting)| Arc::ptr_eq(&waiting.outbox, outbox)).map(|(key, _)| key)
    }

    fn insert(&mut self, outbox: &Arc<Outbox>) -> usize {
        let key = self.waiting.insert(Waiting { outbox: Arc::clone(outbox), promises: 0 });
        if !self.keys.is_empty() {
            self.keys.insert(Self::id(outbox), key);
        } else if self.waiting.len() > Self::FEW {
            self.keys.extend(self.waiting.iter().map(|(key, waiting)| (Self::id(&waiting.outbox), key)));
        }
        key
    }

    fn outbox(&self, agent: u32) -> &Arc<Outbox> {
        &self.waiting[agent as usize].outbox
    }

    /// One promise less, once `body` has had the outbox.
    fn leave<R>(&mut self, agent: u32, body: impl FnOnce(&Arc<Outbox>) -> R) -> R {
        let waiting = &mut self.waiting[agent as usize];
        let result = body(&waiting.outbox);
        waiting.promises -= 1;
        if waiting.promises == 0 {
            self.remove(agent as usize);
        }
        result
    }

    fn remove(&mut self, key: usize) {
        let Waiting { outbox, .. } = self.waiting.remove(key);
        if !self.keys.is_empty() {
            self.keys.remove(&Self::id(&outbox));
        }
        if self.waiting.is_empty() {
            // Or the places of those that were there would be looked through next time.
            self.waiting.clear();
        }
    }
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
///
/// Packed, so that an agent keeps it and what else it knows of a wait in eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(Rust, packed(2))]
pub struct Ticket {
    key: WaiterKey,
    bucket: u16,
}

/// The waiters of all locations whose cache lines share a hash.
#[derive(Debug)]
struct Bucket {
    earliest_deadline: AtomicU64,
    /// Whether there are lines with claims, for those who do not hold the lock.
    has_lines: AtomicBool,
    lists: Mutex<Lists>,
}

/// What a bucket's lock protects.
#[derive(Debug, Default)]
struct Lists {
    waiters: WaiterLists<Entrant>,
    agents: Agents,
    others: Slab<Other>,
    /// By location, the lines that have claims in them.
    lines: HashMap<Location, Line, FxBuildHasher>,
    /// The locations of locks whose holder died when nobody waited; until somebody locks them, or their memory goes (`memories`).
    abandoned: HashSet<Location, FxBuildHasher>,
    /// The locks that have been handed over, and to whom, until the new holder's thread says that its table of holdings has
    /// them: so that at every moment it can be told who holds a lock.
    granted: HashMap<Location, Party, FxBuildHasher>,
}

impl Lists {
    fn entrant(&self, key: WaiterKey) -> Option<&Entrant> {
        self.waiters.get(key).map(|waiter| &waiter.party)
    }

    fn other(&self, key: WaiterKey) -> Option<&Other> {
        match *self.entrant(key)? {
            Entrant::Promise { .. } => None,
            Entrant::Other(other) => Some(&self.others[other as usize]),
        }
    }

    fn is_promise_of(&self, outbox: &Arc<Outbox>, key: WaiterKey) -> bool {
        let entrant = self.entrant(key);
        matches!(entrant, Some(&Entrant::Promise { agent, .. }) if Arc::ptr_eq(self.agents.outbox(agent), outbox))
    }

    /// Whether the waiter with this key is `party`.
    fn is(&self, key: WaiterKey, party: &Party) -> bool {
        match (self.entrant(key), party) {
            (Some(&Entrant::Promise { agent, slot }), Party::Agent(outbox, number)) => {
                slot == *number && Arc::ptr_eq(self.agents.outbox(agent), outbox)
            }
            _ => self.other(key).is_some_and(|other| other.party.is(party)),
        }
    }

    fn deadline(&self, key: WaiterKey) -> Timestamp {
        match self.waiters.get(key) {
            None => Timestamp::NEVER,
            Some(Waiter { party: Entrant::Other(other), .. }) => self.others[*other as usize].deadline,
            Some(waiter) => self.waiters.deadline(waiter),
        }
    }

    /// The entrant for a blocked thread or a claim.
    #[expect(clippy::cast_possible_truncation, reason = "2^32 waiters do not fit into memory")]
    fn admit(&mut self, other: Other) -> Entrant {
        if let Party::Thread(thread) = &other.party {
            thread.reset();
        }
        Entrant::Other(self.others.insert(other) as u32)
    }

    /// Removes one that has left its list.
    fn dismiss(&mut self, other: u32) -> Other {
        let dismissed = self.others.remove(other as usize);
        if self.others.is_empty() && self.others.capacity() > RETAINED_CAPACITY {
            self.others = Slab::new();
        }
        dismissed
    }
}

impl Bucket {
    fn new() -> Self {
        Self {
            earliest_deadline: AtomicU64::new(Timestamp::NEVER.as_nanos()),
            has_lines: AtomicBool::new(false),
            lists: Mutex::default(),
        }
    }
}

/// Those who are woken when this is dropped.
#[derive(Default)]
struct Wakes {
    // Most sections wake one party at most, so the first one needs no allocation.
    first: Option<Wake>,
    rest: Vec<Wake>,
}

impl Wakes {
    fn push(&mut self, wake: Wake) {
        match self.first {
            None => self.first = Some(wake),
            Some(_) => self.rest.push(wake),
        }
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        for wake in self.first.iter().chain(&self.rest) {
            wake.wake();
        }
    }
}

/// One more who is counted at a word, until this is dropped.
struct Counted<'a>(&'a AtomicI32);

impl<'a> Counted<'a> {
    /// What this thread reads afterwards comes after the count.
    fn new(counter: &'a AtomicI32) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Self(counter)
    }

    /// It stays counted.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The right to add and to remove waiters of one bucket (the specification's `EnterCriticalSection` … `LeaveCriticalSection`).
///
/// It ends when this is dropped, also by a panic: then, too, the bucket's earliest deadline is made known, and whose outcomes
/// have been recorded are woken, with no lock held (fields are dropped in their order).
struct CriticalSection<'a> {
    store: &'a WaiterListStore,
    index: usize,
    lists: MutexGuard<'a, Lists>,
    now: Option<Timestamp>,
    /// The agent for whose overdue promises the time is not over, since a job of its is running: this one.
    runs: Option<&'a Arc<Outbox>>,
    /// Whether the calling thread is to let another one run (see `line`).
    makes_room: bool,
    wakes: Wakes,
}

impl Drop for CriticalSection<'_> {
    fn drop(&mut self) {
        let bucket = &self.store.buckets[self.index];
        let earliest = self.lists.waiters.earliest_deadline().as_nanos();
        if bucket.earliest_deadline.load(Ordering::Relaxed) != earliest {
            // SeqCst: pairs with the service's re-check, see `service::alarm`.
            bucket.earliest_deadline.store(earliest, Ordering::SeqCst);
        }
    }
}

impl CriticalSection<'_> {
    /// The present moment, looked up once per section.
    fn now(&mut self) -> Timestamp {
        *self.now.get_or_insert_with(self.store.now)
    }

    /// Appends what `entrant` makes if `enters`, asked after it has been counted, says so. The store times it out at
    /// `indexed`.
    #[expect(clippy::cast_possible_truncation, reason = "there are no more than 2^16 buckets")]
    fn add(
        &mut self,
        location: Location,
        indexed: Timestamp,
        enters: impl FnOnce(&mut Self) -> bool,
        entrant: impl FnOnce(&mut Lists) -> Entrant,
    ) -> Option<Ticket> {
        let counted = Counted::new(self.store.counter(location));
        if !enters(self) {
            return None;
        }
        let entrant = entrant(&mut self.lists);
        let key = self.lists.waiters.push_back(location, indexed, entrant);
        counted.keep();
        Some(Ticket { key, bucket: self.index as u16 })
    }

    fn take_out(&mut self, key: WaiterKey) -> Waiter<Entrant> {
        let waiter = self.lists.waiters.remove(key);
        self.uncount(waiter.location);
        waiter
    }

    fn uncount(&self, location: Location) {
        self.store.counter(location).fetch_sub(1, Ordering::SeqCst);
    }

    /// What is left to do when a blocked thread or a claim has left its list. Whether the next in line is to be looked after,
    /// unless this one acquired the word: for a claim that was nudged, and for each one in a strict line.
    fn dismiss(&mut self, key: WaiterKey, waiter: &Waiter<Entrant>, other: u32) -> (Other, bool) {
        let location = waiter.location;
        let other = self.lists.dismiss(other);
        let line = self.lists.lines.get_mut(&location);
        let Some(request) = other.request else {
            if let Some(line) = line {
                line.leave_plainly(key);
            }
            return (other, false);
        };
        let line = line.expect("a line exists as long as it has claims");
        let passes_on = line.leave(key, waiter.before(), other.party.blocks()) || request.is_strict();
        if line.is_empty() {
            self.lists.lines.remove(&location);
            if self.lists.lines.is_empty() {
                self.store.buckets[self.index].has_lines.store(false, Ordering::Relaxed);
            }
        }
        (other, passes_on)
    }

    /// Takes a waiter out of its list. Whether the next in line is to be looked after, as above.
    fn remove(&mut self, key: WaiterKey) -> bool {
        let waiter = self.take_out(key);
        match waiter.party {
            Entrant::Promise { agent, .. } => {
                self.lists.agents.leave(agent, |_| ());
                false
            }
            Entrant::Other(other) => self.dismiss(key, &waiter, other).1,
        }
    }

    /// Removes a waiter and records how its wait ended (invariant 2). Whether the next in line is to be looked after.
    fn settle_only(&mut self, key: WaiterKey, result: WaitResult) -> bool {
        let waiter = self.take_out(key);
        let other = match waiter.party {
            Entrant::Promise { agent, slot } => {
                self.settle_promise(agent, slot, result);
                return false;
            }
            Entrant::Other(other) => other,
        };
        let (Other { party, request, .. }, passes_on) = self.dismiss(key, &waiter, other);
        if request == Some(Request::Lock) && result.is_acquired() {
            self.lists.granted.insert(waiter.location, party.clone());
        }
        let acquired = request.filter(|_| result.is_acquired()).map(|request| (waiter.location, request));
        match party {
            Party::Thread(thread) => {
                thread.settle(result);
                self.wake(Wake::Thread(thread));
            }
            Party::Agent(outbox, slot) => {
                let rings = match acquired {
                    Some(acquired) => outbox.grant(slot, result, acquired),
                    None => outbox.settle(slot, result),
                };
                if rings {
                    self.wake(Wake::Agent(outbox));
                }
            }
        }
        passes_on && acquired.is_none()
    }

    /// Records how the wait of a promise ended that has been removed.
    fn settle_promise(&mut self, agent: u32, slot: u32, result: WaitResult) {
        let to_ring = self.lists.agents.leave(agent, |outbox| outbox.settle(slot, result).then(|| Arc::clone(outbox)));
        if let Some(outbox) = to_ring {
            self.wake(Wake::Agent(outbox));
        }
    }

    /// Notifies the first at `location` if that is a promise without a time-out, as most are. How many that makes, and who is
    /// the first now. What the general way looks up three times is looked up once here.
    fn notify_first_promise(&mut self, location: Location) -> (usize, Option<WaiterKey>) {
        let is_promise = |entrant: &Entrant| matches!(entrant, Entrant::Promise { .. });
        let Some((first, next)) = self.lists.waiters.pop_front_if(location, is_promise) else {
            return (0, self.lists.waiters.front(location));
        };
        self.uncount(location);
        if let Entrant::Promise { agent, slot } = first {
            self.settle_promise(agent, slot, WaitResult::Ok);
        }
        (1, next)
    }

    /// Removes a waiter and records how its wait ended. If it was a claim that has not acquired the word, the next one gets
    /// its try.
    fn settle(&mut self, key: WaiterKey, location: Location, result: WaitResult) {
        if self.settle_only(key, result) {
            self.pass_on(location);
        }
    }

    fn wake(&mut self, wake: Wake) {
        self.wakes.push(wake);
    }

    /// Whether a waiter's deadline has passed: then it takes nothing any more, even if neither the timer nor its own
    /// thread has come to it yet. But a promise does, as long as it is its own agent that runs.
    fn is_due(&mut self, key: WaiterKey) -> bool {
        match self.lists.deadline(key) {
            Timestamp::NEVER => false,
            deadline => {
                deadline <= self.now() && !self.runs.is_some_and(|outbox| self.lists.is_promise_of(outbox, key))
            }
        }
    }

    /// The deadline of a waiter has come. That of a claim is over; that of a promise stays in the list, for its agent to decide.
    fn expire(&mut self, key: WaiterKey, location: Location) {
        let Some(&Entrant::Promise { agent, slot }) = self.lists.entrant(key) else {
            self.settle(key, location, WaitResult::TimedOut);
            return;
        };
        self.lists.waiters.mark_overdue(key);
        let outbox = self.lists.agents.outbox(agent);
        if outbox.settle(slot, WaitResult::Due) {
            let outbox = Arc::clone(outbox);
            self.wake(Wake::Agent(outbox));
        }
    }

    /// Removes the promise in this slot of an agent if it is the waiter with this key, and overdue. Whether it was.
    fn remove_overdue(&mut self, key: WaiterKey, outbox: &Arc<Outbox>, slot: u32) -> bool {
        let Some(waiter) = self.lists.waiters.get(key).filter(|waiter| waiter.is_overdue()) else { return false };
        let Entrant::Promise { agent, slot: its_slot } = waiter.party else { return false };
        let is_its = its_slot == slot && Arc::ptr_eq(self.lists.agents.outbox(agent), outbox);
        if is_its {
            self.remove(key);
        }
        is_its
    }

    /// The first at `location` that still waits. Those before it whose deadlines have passed are timed out; the caller is
    /// one who looks after the line.
    fn front(&mut self, location: Location) -> Option<WaiterKey> {
        loop {
            let key = self.lists.waiters.front(location)?;
            if !self.is_due(key) {
                return Some(key);
            }
            self.settle_only(key, WaitResult::TimedOut);
        }
    }

    /// What the claim with this key asks for; `None` for a plain waiter.
    fn request(&self, key: WaiterKey) -> Option<Request> {
        self.lists.other(key)?.request
    }

    /// Whether the claim with this key is a blocked thread's.
    fn blocks(&self, key: WaiterKey) -> bool {
        self.lists.other(key).is_some_and(|claim| claim.party.blocks())
    }

    /// Whether a claim may be handed a lock as far as its thread is concerned: that blocks, or ran a moment ago.
    fn is_ready(&self, location: Location, key: WaiterKey) -> bool {
        self.blocks(key) || self.lists.lines.get(&location).is_some_and(|line| line.has_tried(key))
    }

    /// Whose turn it is to be handed the lock at `location`, which is being released, if it is anybody's (see `line`).
    fn whose_turn(&mut self, location: Location) -> Option<WaiterKey> {
        let (mut key, _, mut passed_waiters) = self.first_claim(location)?;
        if !self.is_ready(location, key) {
            let now = self.now();
            self.makes_room = self.lists.lines.get_mut(&location)?.keeps_waiting(key, now);
            let behind_waiters;
            (key, behind_waiters) = self.first_thread(location)?;
            passed_waiters |= behind_waiters;
        }
        let has_tried = self.lists.lines.get(&location)?.has_tried(key);
        let is_its_turn = has_tried || {
            let now = self.now();
            self.lists.lines.get_mut(&location)?.passes_over(key, now)
        };
        (is_its_turn && !passed_waiters).then_some(key)
    }

    /// The first claim at `location`, what it asks for, and whether plain waiters stood before it; those are notified on
    /// the way.
    fn first_claim(&mut self, location: Location) -> Option<(WaiterKey, Request, bool)> {
        let mut passed_waiters = false;
        while self.lists.lines.contains_key(&location) {
            let key = self.front(location)?;
            if let Some(request) = self.request(key) {
                return Some((key, request, passed_waiters));
            }
            passed_waiters = true;
            self.settle_only(key, WaitResult::Ok);
        }
        None
    }

    /// The first plain waiter at `location`, where a claim is the first of all.
    fn first_plain_waiter(&mut self, location: Location) -> Option<WaiterKey> {
        let line = self.lists.lines.get(&location)?;
        if self.lists.waiters.count(location) == line.claims() {
            return None;
        }
        let mut leading = line.leading.or_else(|| self.lists.waiters.front(location))?;
        let first = loop {
            let next = self.lists.waiters.next(leading)?;
            if self.request(next).is_none() {
                break next;
            }
            leading = next;
        };
        self.lists.lines.get_mut(&location)?.leading = Some(leading);
        Some(first)
    }

    /// The first blocked thread behind the first claim at `location`, which is a promise's, that still waits and has a claim;
    /// and whether blocked threads stood before it that were to be notified, which is done on the way.
    fn first_thread(&mut self, location: Location) -> Option<(WaiterKey, bool)> {
        let mut passed_waiters = false;
        loop {
            let key = self.lists.lines.get(&location)?.first_thread()?;
            if self.is_due(key) {
                self.settle_only(key, WaitResult::TimedOut);
            } else if self.request(key).is_some() {
                return Some((key, passed_waiters));
            } else {
                passed_waiters = true;
                self.settle_only(key, WaitResult::Ok);
            }
        }
    }

    /// Wakes the first claim at `location` so that it tries. If it is a promise's, whose agent may be busy, the first blocked
    /// thread behind it, too.
    fn nudge(&mut self, location: Location, first: WaiterKey) {
        if !self.blocks(first)
            && let Some((thread, _)) = self.first_thread(location)
        {
            let now = self.now();
            if let Some(line) = self.lists.lines.get_mut(&location) {
                line.begin_to_keep_waiting(first, || now);
            }
            self.nudge_only(location, thread);
        }
        self.nudge_only(location, first);
    }

    /// The same for a notification, which counts each plain waiter that it wakes: it wakes none on the way to the thread.
    fn nudge_for_notification(&mut self, location: Location, first: WaiterKey) {
        if !self.blocks(first)
            && let Some(thread) = self.first_claiming_thread(location)
        {
            self.nudge_only(location, thread);
        }
        self.nudge_only(location, first);
    }

    /// The first blocked thread behind the first claim, which is a promise's, that has a claim.
    fn first_claiming_thread(&self, location: Location) -> Option<WaiterKey> {
        self.lists.lines.get(&location)?.threads().find(|&thread| self.request(thread).is_some())
    }

    fn nudge_only(&mut self, location: Location, key: WaiterKey) {
        let Some(party) = self.lists.other(key).map(|claim| claim.party.clone()) else { return };
        if !self.lists.lines.get_mut(&location).is_some_and(|line| line.nudge(key, party.blocks())) {
            return;
        }
        match party {
            Party::Thread(thread) => {
                thread.nudge();
                self.wake(Wake::Thread(thread));
            }
            Party::Agent(outbox, slot) => {
                if outbox.nudge(slot) {
                    self.wake(Wake::Agent(outbox));
                }
            }
        }
    }

    /// The word may be free: the next in line gets its try.
    fn pass_on(&mut self, location: Location) {
        if let Some((key, ..)) = self.first_claim(location) {
            self.nudge(location, key);
        } else if let Some(key) = self.front(location) {
            self.settle_only(key, WaitResult::Ok);
        }
    }

    /// The word has changed: the first claims of a strict line get what it is enough for, that of a lock is nudged.
    fn advance(&mut self, location: Location, word: &impl Word) {
        while let Some((key, request, _)) = self.first_claim(location)
            && request.is_strict()
        {
            match self.take(location, request, word) {
                Some(result) => self.settle_only(key, result),
                None => return,
            };
        }
        self.pass_on(location);
    }

    /// The first claim gets its try if the word grants what it asks for, although nobody has said that the word has changed.
    fn look(&mut self, location: Location, word: &impl Word) {
        let waiters = &self.lists.waiters;
        let mut line = std::iter::successors(waiters.front(location), |&key| waiters.next(key));
        let first = line.find_map(|key| self.request(key));
        if first.is_some_and(|request| request.is_granted_by(word)) {
            self.advance(location, word);
        }
    }

    /// Takes what `request` asks for, if the word grants it now.
    fn take(&mut self, location: Location, request: Request, word: &impl Word) -> Option<WaitResult> {
        request
            .take(word)
            .then(|| if self.inherit(location, request) { WaitResult::AcquiredFromDead } else { WaitResult::Acquired })
    }

    /// Whether the word at `location`, from which `request` has been taken, had been abandoned. Who has it alone can put
    /// right what was left half done, so that one ends it; readers are all told.
    fn inherit(&mut self, location: Location, request: Request) -> bool {
        match request {
            Request::Lock | Request::Exclusive => {
                let was_abandoned = self.lists.abandoned.remove(&location);
                if was_abandoned {
                    self.store.abandoned(self.index).fetch_sub(1, Ordering::SeqCst);
                }
                was_abandoned
            }
            Request::Shared => self.lists.abandoned.contains(&location),
            Request::Permits(_) | Request::Signals(_) => false,
        }
    }

    /// The holder gives back what it took from the word. A lock goes to a claim if it is its turn, otherwise to whoever is quickest.
    fn release(&mut self, location: Location, request: Request, word: &impl Word) {
        if request == Request::Lock {
            self.lists.granted.remove(&location);
            if let Some(next) = self.whose_turn(location) {
                self.settle_only(next, WaitResult::Acquired);
                return;
            }
        }
        request.give_back(word);
        self.advance(location, word);
    }
}

/// How many wait, by place of the word in its cache line; or how many locations are abandoned, by bucket.
pub type Counters = [AtomicI32; COUNTERS];

/// How many counters there are in a line of them.
const COUNTERS: usize = CACHE_LINE / 4;

/// All waiters of a process (of a test, of a model). Any thread may call any method.
#[derive(Debug)]
pub struct WaiterListStore {
    buckets: Box<[CachePadded<Bucket>]>,
    /// For each bucket those of its words; and behind them the numbers of abandoned locations, one for each bucket. Apart from the
    /// buckets because JavaScript may read them.
    counters: Box<[CachePadded<Counters>]>,
    now: fn() -> Timestamp,
}

impl WaiterListStore {
    /// How many waiters that are due are settled before others may enter their bucket.
    const EXPIRE_AT_ONCE: usize = 512;

    /// A store with `buckets` shards (a power of two, up to 2^16) that tells the time by `now`.
    ///
    /// # Panics
    /// If `buckets` is none.
    pub fn new(buckets: usize, now: fn() -> Timestamp) -> Self {
        assert!(buckets.is_power_of_two() && buckets <= 1 << 16);
        Self {
            buckets: (0..buckets).map(|_| CachePadded::new(Bucket::new())).collect(),
            counters: (0..buckets + buckets.div_ceil(COUNTERS)).map(|_| CachePadded::default()).collect(),
            now,
        }
    }

    /// The counters that JavaScript may read: of waiters by bucket and word, and then of abandoned locations by bucket.
    pub fn counters(&self) -> &[CachePadded<Counters>] {
        &self.counters
    }

    /// The counter of those who wait at `location`, or at the same word of other lines of the same hash; found as by `of` in
    /// `lib/counters.js`.
    pub fn counter(&self, location: Location) -> &AtomicI32 {
        &self.counters[self.index_of(location)][location.address() / 4 % COUNTERS]
    }

    /// Whether nobody waits at `location`: yes is certain, for who has changed the word before; no is a reason to take the lock.
    fn is_deserted(&self, location: Location) -> bool {
        let counter = self.counter(location);
        counter.load(Ordering::Relaxed) == 0 && {
            fence(Ordering::SeqCst);
            counter.load(Ordering::Relaxed) == 0
        }
    }

    /// Whether any lock of the bucket of `location` is abandoned.
    pub fn any_abandoned_near(&self, location: Location) -> bool {
        self.abandoned(self.index_of(location)).load(Ordering::SeqCst) != 0
    }

    /// Whether any lock at these addresses is abandoned.
    pub fn any_abandoned_in(&self, addresses: &Range<usize>) -> bool {
        let is_in = |location: &Location| addresses.contains(&location.address());
        self.buckets_with_abandoned().any(|index| lock(&self.buckets[index].lists).abandoned.iter().any(is_in))
    }

    /// Forgets that locks at these addresses were abandoned: their memory is gone.
    pub fn forget_abandoned(&self, addresses: &Range<usize>) {
        for index in self.buckets_with_abandoned() {
            let abandoned = &mut lock(&self.buckets[index].lists).abandoned;
            let forgotten = abandoned.extract_if(|location| addresses.contains(&location.address()));
            let forgotten = i32::try_from(forgotten.count()).expect("the counter has counted them");
            self.abandoned(index).fetch_sub(forgotten, Ordering::SeqCst);
        }
    }

    fn buckets_with_abandoned(&self) -> impl Iterator<Item = usize> {
        (0..self.buckets.len()).filter(|&index| self.abandoned(index).load(Ordering::SeqCst) != 0)
    }

    /// The counter of the abandoned locations of a bucket; found as by `abandonedOf` in `lib/counters.js`.
    fn abandoned(&self, bucket: usize) -> &AtomicI32 {
        &self.counters[self.buckets.len() + bucket / COUNTERS][bucket % COUNTERS]
    }

    /// The number of the bucket that `location` falls into: that of its cache line.
    #[expect(clippy::cast_possible_truncation, reason = "the lower bits of an address are enough to tell lines apart")]
    pub fn index_of(&self, location: Location) -> usize {
        // Far apart for neighbouring lines (Fibonacci hashing).
        let hash = ((location.address() / CACHE_LINE) as u32).wrapping_mul(0x9E37_79B1);
        ((u64::from(hash) * self.buckets.len() as u64) >> 32) as usize
    }

    /// Runs `body` under a bucket's lock and then, without it, wakes whom it settled.
    fn critical_section<'a, R>(&'a self, index: usize, body: impl FnOnce(&mut CriticalSection<'a>) -> R) -> R {
        let lists = lock(&self.buckets[index].lists);
        body(&mut CriticalSection {
            store: self,
            index,
            lists,
            now: None,
            runs: None,
            makes_room: false,
            wakes: Wakes::default(),
        })
    }

    /// Runs `body` on a waiter that `party` was given a ticket for, unless it is settled already.
    fn with_waiter<R>(
        &self,
        ticket: Ticket,
        party: &Party,
        body: impl FnOnce(&mut CriticalSection<'_>, WaiterKey, Location) -> R,
    ) -> Option<R> {
        self.critical_section(usize::from(ticket.bucket), |section| {
            let location = section.lists.waiters.get(ticket.key)?.location;
            let waits = section.lists.is(ticket.key, party)
                // A thread uses one record for all its waits; what tells whether this one is over is the outcome.
                && !matches!(party, Party::Thread(thread) if thread.outcome().is_some());
            waits.then(|| body(section, ticket.key, location))
        })
    }

    /// Lines up who is made by `entrant` at `location` if `is_equal` says, in the same critical section, that the word still
    /// holds the expected value (invariant 3). `None`: it does not.
    fn enqueue(
        &self,
        location: Location,
        indexed: Timestamp,
        is_equal: impl FnOnce() -> bool,
        entrant: impl FnOnce(&mut Lists) -> Entrant,
    ) -> Option<Ticket> {
        self.critical_section(self.index_of(location), |section| {
            section.add(location, indexed, |_| is_equal(), entrant)
        })
    }

    /// [`Self::enqueue`] for a blocking thread, the calling one, which then calls [`Self::park`] until that gives a result.
    pub fn enqueue_thread(
        &self,
        location: Location,
        thread: &Arc<BlockedThread>,
        deadline: Timestamp,
        is_equal: impl FnOnce() -> bool,
    ) -> Option<Ticket> {
        self.critical_section(self.index_of(location), |section| {
            // It watches its deadline itself.
            let ticket = section.add(
                location,
                Timestamp::NEVER,
                |_| is_equal(),
                |lists| lists.admit(Other { party: Party::Thread(Arc::clone(thread)), request: None, deadline }),
            )?;
            if let Some(line) = section.lists.lines.get_mut(&location) {
                line.join_plainly(ticket.key);
            }
            Some(ticket)
        })
    }

    /// [`Self::enqueue`] for a promise: `slot` of the agent that `outbox` belongs to.
    pub fn enqueue_agent(
        &self,
        location: Location,
        outbox: &Arc<Outbox>,
        slot: u32,
        deadline: Timestamp,
        is_equal: impl FnOnce() -> bool,
    ) -> Option<Ticket> {
        self.enqueue(location, deadline, is_equal, |lists| Entrant::Promise { agent: lists.agents.enter(outbox), slot })
    }

    /// Blocks `thread`, the calling one, until its wait is over, its claim is nudged, or `until` has come.
    pub fn park(&self, ticket: Ticket, thread: &Arc<BlockedThread>, deadline: Timestamp, until: Timestamp) -> Woken {
        match thread.park_until(deadline.min(until)) {
            Woken::TimeOver if (self.now)() >= deadline => Woken::Settled(self.withdraw_thread(ticket, thread)),
            woken => woken,
        }
    }

    /// Ends the wait of `thread`, the calling one: timed out, unless it was settled before.
    pub fn withdraw_thread(&self, ticket: Ticket, thread: &Arc<BlockedThread>) -> WaitResult {
        self.with_waiter(ticket, &Party::Thread(Arc::clone(thread)), |section, key, location| {
            section.settle(key, location, WaitResult::TimedOut);
        });
        // Under the lock an outcome was final: who removed the waiter recorded it in the same critical section.
        thread.outcome().unwrap_or(WaitResult::TimedOut)
    }

    /// Takes a promise out of the line. False if it is settled already: then its outcome is in the outbox.
    pub fn withdraw_agent(&self, ticket: Ticket, outbox: &Arc<Outbox>, slot: u32) -> bool {
        let withdrawn = self.with_waiter(ticket, &Party::Agent(Arc::clone(outbox), slot), |section, key, location| {
            if section.remove(key) {
                section.pass_on(location);
            }
        });
        withdrawn.is_some()
    }

    /// Wakes up to `count` waiters at `location`, those first that came first, and gives their number.
    ///
    /// A claim is woken by being nudged: so a thread that locks by means of `Atomics.wait` and `notify` tells the line.
    ///
    /// `runs`: the agent that notifies, whose own promises can be woken until a job of its has decided otherwise. Those of
    /// other agents are timed out on the way once their deadlines have passed.
    pub fn notify<'a>(&'a self, location: Location, count: usize, runs: Option<&'a Arc<Outbox>>) -> usize {
        if count == 0 || self.is_deserted(location) {
            return 0;
        }
        self.critical_section(self.index_of(location), |section| {
            section.runs = runs;
            let mut nudged = false;
            let mut passes_on = false;
            let (mut woken, mut next) = section.notify_first_promise(location);
            while woken < count
                && let Some(key) = next
            {
                let is_claim = section.request(key).is_some();
                if is_claim && nudged {
                    next = section.first_plain_waiter(location);
                    continue;
                }
                next = section.lists.waiters.next(key);
                if section.is_due(key) {
                    passes_on |= section.settle_only(key, WaitResult::TimedOut);
                    continue;
                }
                woken += 1;
                if is_claim {
                    nudged = true;
                    section.nudge_for_notification(location, key);
                } else {
                    section.settle_only(key, WaitResult::Ok);
                }
            }
            if passes_on {
                section.pass_on(location);
            }
            woken
        })
    }

    /// Times out the claims that are due, tells the agents of promises that are, and gives the earliest deadline of the others.
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

    /// Decides the time-outs of an agent's promises, in a job of that agent: those of `settlements` that are [`WaitResult::Due`]
    /// become time-outs, except of waits that have ended otherwise meanwhile; these are left out. `ticket` gives that of a slot.
    pub fn decide(
        &self,
        outbox: &Arc<Outbox>,
        settlements: &mut Vec<Settlement>,
        ticket: impl Fn(u32) -> Option<Ticket>,
    ) {
        let mut rest = settlements.as_mut_slice();
        let mut any = false;
        while let Some(place) = rest.iter().position(|settlement| settlement.result == WaitResult::Due) {
            any = true;
            rest = &mut rest[place..];
            let Some(Ticket { bucket, .. }) = ticket(rest[0].slot) else {
                rest = &mut rest[1..];
                continue;
            };
            let decided = self.critical_section(usize::from(bucket), |section| {
                // The timer comes to one bucket after the other, so the next ones mostly are of this one, too.
                for (place, settlement) in rest.iter_mut().take(Self::EXPIRE_AT_ONCE).enumerate() {
                    if settlement.result != WaitResult::Due {
                        continue;
                    }
                    match ticket(settlement.slot) {
                        Some(ticket) if ticket.bucket != bucket => return place,
                        Some(ticket) if section.remove_overdue(ticket.key, outbox, settlement.slot) => {
                            settlement.result = WaitResult::TimedOut;
                        }
                        _ => {}
                    }
                }
                Self::EXPIRE_AT_ONCE
            });
            rest = rest.get_mut(decided..).unwrap_or_default();
        }
        if any {
            settlements.retain(|settlement| settlement.result != WaitResult::Due);
        }
    }

    /// The earliest deadline of all promises.
    pub fn earliest_deadline(&self) -> Timestamp {
        let nanos = self.buckets.iter().map(|bucket| bucket.earliest_deadline.load(Ordering::SeqCst)).min();
        nanos.map_or(Timestamp::NEVER, Timestamp::from_nanos)
    }

    /// How many wait at `location`, blocked threads and promises.
    pub fn count(&self, location: Location) -> u32 {
        lock(&self.buckets[self.index_of(location)].lists).waiters.count(location)
    }
}

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claimed {
    /// It has what it asked for.
    Now(WaitResult),
    /// It stands in the line.
    Pending(Ticket),
}

/// What came of freeing a lock that the calling thread does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freed<H> {
    /// It is free, or handed over.
    Now,
    /// It was free.
    NotLocked,
    /// That one holds it, or is about to.
    Held(H),
}

/// The line before a word that excludes; see `line`. `word` is always the one at `location`.
impl WaiterListStore {
    /// Acquires the word for `party`, or lines it up.
    ///
    /// A thread, which must be the calling one, then calls [`Self::park`], and when nudged [`Self::try_claim`]. Whoever is lined up
    /// makes sure that somebody calls [`Self::look`] from time to time.
    pub fn claim(
        &self,
        location: Location,
        party: Party,
        request: Request,
        deadline: Timestamp,
        word: &impl Word,
    ) -> Claimed {
        self.critical_section(self.index_of(location), |section| {
            if request.is_strict() && section.lists.lines.get(&location).is_some_and(Line::waits_for_promise) {
                // Its agent may be busy, and this one is not to wait for more than its turn.
                section.advance(location, word);
            }
            let mut taken = None;
            let blocks = party.blocks();
            let indexed = if blocks { Timestamp::NEVER } else { deadline };
            let enters = |section: &mut CriticalSection<'_>| {
                if !(request.is_strict() && section.lists.lines.contains_key(&location)) {
                    taken = section.take(location, request, word);
                }
                taken.is_none()
            };
            let ticket = section
                .add(location, indexed, enters, |lists| lists.admit(Other { party, request: Some(request), deadline }));
            let Some(ticket) = ticket else { return Claimed::Now(taken.unwrap_or(WaitResult::Acquired)) };
            let previous = section.lists.waiters.previous(ticket.key);
            self.buckets[section.index].has_lines.store(true, Ordering::Relaxed);
            section.lists.lines.entry(location).or_default().join(ticket.key, previous, blocks);
            Claimed::Pending(ticket)
        })
    }

    /// Acquires the word for the calling thread if that needs no waiting.
    pub fn try_take(&self, location: Location, request: Request, word: &impl Word) -> Option<WaitResult> {
        self.critical_section(self.index_of(location), |section| {
            let would_overtake = request.is_strict() && section.lists.lines.contains_key(&location);
            if would_overtake { None } else { section.take(location, request, word) }
        })
    }

    /// Until when a blocked thread's claim that was nudged had better not try, so that a promise's before it goes first. `None`: it
    /// may try now.
    pub fn head_start(&self, ticket: Ticket, thread: &Arc<BlockedThread>) -> Option<Timestamp> {
        let until = self.with_waiter(ticket, &Party::Thread(Arc::clone(thread)), |section, key, location| {
            let until = section.lists.lines.get(&location)?.head_start(key)?;
            (until > section.now()).then_some(until)
        });
        until.flatten()
    }

    /// A nudged claim tries. `None`: somebody was quicker, it keeps its place; or it is settled already.
    pub fn try_claim(&self, ticket: Ticket, party: &Party, word: &impl Word) -> Option<WaitResult> {
        self.with_waiter(ticket, party, |section, key, location| {
            let request = section.request(key)?;
            // A nudge may come late, when its slot has been given to another claim, whose turn it is not.
            if !section.lists.lines.get_mut(&location)?.tries(key, party.blocks()) {
                return None;
            }
            if request.is_strict() && section.first_claim(location).is_none_or(|(first, ..)| first != key) {
                section.advance(location, word);
                return None;
            }
            let taken = section.take(location, request, word)?;
            section.remove(key);
            if request.is_strict() {
                section.advance(location, word);
            } else if !party.blocks() {
                // JavaScript, which may run before this is in its thread's table of holdings, is told together with others.
                section.lists.granted.insert(location, party.clone());
            }
            Some(taken)
        })
        .flatten()
    }

    /// The calling thread gives back what it took from the word.
    ///
    /// A lock goes to the first in line if it is its turn, otherwise to whoever is quickest. Whether the calling thread had
    /// better sleep for a moment if it may: somebody who waits for the lock may want its processor.
    pub fn release(&self, location: Location, request: Request, word: &impl Word) -> bool {
        self.critical_section(self.index_of(location), |section| {
            section.release(location, request, word);
            section.makes_room
        })
    }

    /// The table of holdings of `party`'s thread has the lock that was handed over to it, or that its claim took for a promise.
    pub fn delivered(&self, location: Location, party: &Party) {
        self.critical_section(self.index_of(location), |section| {
            if section.lists.granted.get(&location).is_some_and(|granted| granted.is(party)) {
                section.lists.granted.remove(&location);
            }
        });
    }

    /// What [`Self::delivered`] said is taken back: the lock is on its way to `party` again.
    pub fn undelivered(&self, location: Location, party: Party) {
        self.critical_section(self.index_of(location), |section| {
            section.lists.granted.insert(location, party);
        });
    }

    /// Frees a lock that nobody is known to hold. `holder` says who does; it is given to whom the lock is on its way.
    ///
    /// So that the answer is right, whoever takes the lock in JavaScript notes before that it is about to, and whoever gives it
    /// back there notes that, until it has looked at the counter. Somebody is counted as long as this looks: so who gives it back
    /// meanwhile comes here afterwards and waits for the bucket, with its note. Thus if the word is found locked, then its holder
    /// was already on its way to holding it when the counter was raised, or has taken it from one who waits; and either
    /// is noted.
    pub fn free<H>(
        &self,
        location: Location,
        word: &impl Word,
        holder: impl FnOnce(Option<&Party>) -> Option<H>,
    ) -> Freed<H> {
        self.critical_section(self.index_of(location), |section| {
            let _counted = Counted::new(self.counter(location));
            if word.load() == UNLOCKED {
                return Freed::NotLocked;
            }
            if let Some(holder) = holder(section.lists.granted.get(&location)) {
                return Freed::Held(holder);
            }
            section.release(location, Request::Lock, word);
            Freed::Now
        })
    }

    /// Gives `body` to whom the lock is on its way.
    pub fn with_grant<R>(&self, location: Location, body: impl FnOnce(Option<&Party>) -> R) -> R {
        self.critical_section(self.index_of(location), |section| body(section.lists.granted.get(&location)))
    }

    /// JavaScript has changed the word, by an atomic operation, when somebody was being counted: that one gets its try.
    pub fn released(&self, location: Location, word: &impl Word) {
        self.critical_section(self.index_of(location), |section| section.advance(location, word));
    }

    /// The same, when it is not certain that the memory is still there: only claimants themselves look at their words.
    pub fn nudge(&self, location: Location) {
        self.critical_section(self.index_of(location), |section| section.pass_on(location));
    }

    /// Looks at the words of all lines, given by `word`: a word may have been freed without the line being told, and then its
    /// first claims get their try. Whether there are any lines.
    ///
    /// `word` is called in critical sections, for locations that have claims, and what it gives is used as long as they have.
    pub fn look<W: Word>(&self, word: impl Fn(Location) -> W) -> bool {
        let has_lines = |&index: &usize| self.buckets[index].has_lines.load(Ordering::Relaxed);
        let mut any = false;
        for index in (0..self.buckets.len()).filter(has_lines) {
            any = true;
            self.critical_section(index, |section| {
                let locations: Vec<Location> = section.lists.lines.keys().copied().collect();
                for location in locations {
                    section.look(location, &word(location));
                }
            });
        }
        any
    }

    /// The thread that took something from the word has died.
    pub fn abandon(&self, location: Location, request: Request, word: &impl Word) {
        self.critical_section(self.index_of(location), |section| {
            if request == Request::Lock {
                section.lists.granted.remove(&location);
            }
            if request == Request::Lock
                && let Some((first, ..)) = section.first_claim(location)
                && section.is_ready(location, first)
            {
                section.settle_only(first, WaitResult::AcquiredFromDead);
                return;
            }
            if request.is_exclusive() && section.lists.abandoned.insert(location) {
                self.abandoned(section.index).fetch_add(1, Ordering::SeqCst);
            }
            // After the count: who takes the word as it is now sees that there is something to ask for.
            request.give_back(word);
            section.advance(location, word);
        });
    }

    /// What was acquired, with `result`, is given back unused: the next is told of a death if this one was.
    pub fn give_back_unused(&self, location: Location, request: Request, result: WaitResult, word: &impl Word) {
        if result == WaitResult::AcquiredFromDead {
            self.abandon(location, request, word);
        } else {
            self.release(location, request, word);
        }
    }

    /// Whether the lock, which the calling thread has just taken without coming here, had been abandoned.
    pub fn inherit(&self, location: Location, request: Request) -> bool {
        self.critical_section(self.index_of(location), |section| section.inherit(location, request))
    }
}
