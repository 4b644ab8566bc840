//! A shard of the queue: the waiters of all locations whose cache lines share a hash.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;
use slab::Slab;

use super::outbox::Outbox;
use super::policy::Claims;
use super::waiter::Waiter;
use super::waiter_list::{RETAINED_CAPACITY, Record, WaiterKey, WaiterLists};
use crate::clock::Timestamp;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering};

/// A shard, with its own lock.
#[derive(Debug)]
pub(super) struct Bucket<P: Claims> {
    /// Of the promises and claims in it, for threads that do not hold the lock.
    pub(super) earliest_deadline: AtomicU64,
    /// Whether there are claims, for threads that do not hold the lock.
    pub(super) has_claims: AtomicBool,
    pub(super) lists: Mutex<Lists<P>>,
}

impl<P: Claims> Bucket<P> {
    pub(super) fn new() -> Self {
        Self {
            earliest_deadline: AtomicU64::new(Timestamp::NEVER.as_nanos()),
            has_claims: AtomicBool::new(false),
            lists: Mutex::default(),
        }
    }

    /// Publishes the earliest deadline.
    pub(super) fn publish_deadline(&self, earliest: Timestamp) {
        let earliest = earliest.as_nanos();
        if self.earliest_deadline.load(Ordering::Relaxed) != earliest {
            // SeqCst: pairs with the service's re-check, see `service::alarm`.
            self.earliest_deadline.store(earliest, Ordering::SeqCst);
        }
    }
}

/// Finds a waiter again. Only valid together with the waiter that it was made for: so a key that is reused is recognised.
///
/// Packed, so that an agent keeps it and what else it knows of a wait in eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(Rust, packed(2))]
pub struct Ticket {
    pub(super) key: WaiterKey,
    pub(super) bucket: u16,
}

/// A waiter in a list. As small as possible, since there may be a million promises.
#[derive(Debug)]
pub(super) enum Packed {
    /// A promise without a claim: the key of its agent's outbox in [`Outboxes`], and its slot.
    Promise { outbox: u32, slot: u32 },
    /// A thread or a claim: its key in [`Lists::others`].
    Other(u32),
}

const _: () = assert!(size_of::<Option<Record<Packed>>>() <= 32);

/// A blocked thread, or a claim.
#[derive(Debug)]
pub(super) struct Other<P: Claims> {
    pub(super) waiter: Waiter<P::Grant>,
    pub(super) claim: Option<P::Claim>,
    pub(super) deadline: Timestamp,
}

/// What a bucket's lock protects.
#[derive(Debug)]
pub(crate) struct Lists<P: Claims> {
    pub(super) waiters: WaiterLists<Packed>,
    pub(super) outboxes: Outboxes<P::Grant>,
    others: Slab<Other<P>>,
    /// What the policy keeps for this bucket.
    pub(crate) policy: P,
}

impl<P: Claims> Default for Lists<P> {
    fn default() -> Self {
        Self {
            waiters: WaiterLists::default(),
            outboxes: Outboxes::default(),
            others: Slab::new(),
            policy: P::default(),
        }
    }
}

impl<P: Claims> Lists<P> {
    pub(super) fn packed(&self, key: WaiterKey) -> Option<&Packed> {
        self.waiters.get(key).map(|record| &record.waiter)
    }

    /// The blocked thread or claim with this key.
    pub(super) fn other(&self, key: WaiterKey) -> Option<&Other<P>> {
        match *self.packed(key)? {
            Packed::Promise { .. } => None,
            Packed::Other(other) => Some(&self.others[other as usize]),
        }
    }

    pub(super) fn is_promise_of(&self, outbox: &Arc<Outbox<P::Grant>>, key: WaiterKey) -> bool {
        let packed = self.packed(key);
        matches!(packed, Some(&Packed::Promise { outbox: its, .. }) if Arc::ptr_eq(self.outboxes.get(its), outbox))
    }

    /// Whether the waiter with this key is `waiter`.
    pub(super) fn is(&self, key: WaiterKey, waiter: &Waiter<P::Grant>) -> bool {
        match (self.packed(key), waiter) {
            (Some(&Packed::Promise { outbox: its, slot: its_slot }), Waiter::Agent(outbox, slot)) => {
                its_slot == *slot && Arc::ptr_eq(self.outboxes.get(its), outbox)
            }
            _ => self.other(key).is_some_and(|other| other.waiter.is(waiter)),
        }
    }

    pub(super) fn deadline(&self, key: WaiterKey) -> Timestamp {
        match self.waiters.get(key) {
            None => Timestamp::NEVER,
            Some(Record { waiter: Packed::Other(other), .. }) => self.others[*other as usize].deadline,
            Some(record) => self.waiters.deadline(record),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "2^32 waiters do not fit into memory")]
    pub(super) fn insert_other(&mut self, other: Other<P>) -> Packed {
        if let Waiter::Thread(thread) = &other.waiter {
            thread.reset();
        }
        Packed::Other(self.others.insert(other) as u32)
    }

    pub(super) fn remove_other(&mut self, other: u32) -> Other<P> {
        let removed = self.others.remove(other as usize);
        if self.others.is_empty() && self.others.capacity() > RETAINED_CAPACITY {
            self.others = Slab::new();
        }
        removed
    }
}

/// The outboxes of the agents whose promises wait in a bucket: each once, with the number of its promises.
#[derive(Debug)]
pub(super) struct Outboxes<G> {
    counted: Slab<(Arc<Outbox<G>>, u32)>,
    /// The last one that got a promise, and often gets the next one.
    last: usize,
    /// By [`Outboxes::id`], the keys of all, once there have been more than [`Self::FEW`], until there are none. A search among few
    /// takes no longer than a look into this.
    keys: HashMap<usize, usize, FxBuildHasher>,
}

impl<G> Default for Outboxes<G> {
    fn default() -> Self {
        Self { counted: Slab::new(), last: 0, keys: HashMap::default() }
    }
}

impl<G> Outboxes<G> {
    const FEW: usize = 8;

    /// Distinguishes this outbox from all others as long as it exists.
    fn id(outbox: &Arc<Outbox<G>>) -> usize {
        Arc::as_ptr(outbox).addr()
    }

    /// Counts one more promise of this outbox's agent. The outbox's key as long as one of its promises is counted.
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 2^32 agents")]
    pub(super) fn add(&mut self, outbox: &Arc<Outbox<G>>) -> u32 {
        if !self.counted.get(self.last).is_some_and(|(last, _)| Arc::ptr_eq(last, outbox)) {
            self.last = self.find(outbox).unwrap_or_else(|| self.insert(outbox));
        }
        self.counted[self.last].1 += 1;
        self.last as u32
    }

    fn find(&self, outbox: &Arc<Outbox<G>>) -> Option<usize> {
        if !self.keys.is_empty() {
            return self.keys.get(&Self::id(outbox)).copied();
        }
        let mut all = self.counted.iter();
        all.find(|(_, (other, _))| Arc::ptr_eq(other, outbox)).map(|(key, _)| key)
    }

    fn insert(&mut self, outbox: &Arc<Outbox<G>>) -> usize {
        let key = self.counted.insert((Arc::clone(outbox), 0));
        if !self.keys.is_empty() {
            self.keys.insert(Self::id(outbox), key);
        } else if self.counted.len() > Self::FEW {
            self.keys.extend(self.counted.iter().map(|(key, (outbox, _))| (Self::id(outbox), key)));
        }
        key
    }

    pub(super) fn get(&self, key: u32) -> &Arc<Outbox<G>> {
        &self.counted[key as usize].0
    }

    /// Runs `body` with the outbox, and counts one promise less.
    pub(super) fn subtract<R>(&mut self, key: u32, body: impl FnOnce(&Arc<Outbox<G>>) -> R) -> R {
        let key = key as usize;
        let (outbox, promises) = &mut self.counted[key];
        let result = body(outbox);
        *promises -= 1;
        if *promises == 0 {
            let (outbox, _) = self.counted.remove(key);
            if !self.keys.is_empty() {
                self.keys.remove(&Self::id(&outbox));
            }
            if self.counted.is_empty() {
                // Otherwise `find` would look through all the vacant entries.
                self.counted.clear();
            }
        }
        result
    }
}
