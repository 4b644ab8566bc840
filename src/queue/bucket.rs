//! A shard of the queue: the waiters of all locations whose cache lines share a hash.

use super::waiter_list::WaiterKey;
use crate::clock::Timestamp;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// A shard, with its own lock.
#[derive(Debug)]
pub(super) struct Bucket<L> {
    /// Of the promises and claims in it, for threads that do not hold the lock.
    pub(super) earliest_deadline: AtomicU64,
    /// Whether there are claims, for threads that do not hold the lock.
    pub(super) has_claims: AtomicBool,
    pub(super) lists: Mutex<L>,
}

impl<L: Default> Bucket<L> {
    pub(super) fn new() -> Self {
        Self {
            earliest_deadline: AtomicU64::new(Timestamp::NEVER.as_nanos()),
            has_claims: AtomicBool::new(false),
            lists: Mutex::default(),
        }
    }
}

impl<L> Bucket<L> {
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
