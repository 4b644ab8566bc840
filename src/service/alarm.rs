//! What the service sleeps for: agreed between it and the threads that line promises up.
//!
//! # Why no deadline is missed
//! A registering thread stores its bucket's earliest deadline (in the critical section that adds the waiter), then reads
//! the alarm, and rings if it is set later than its own deadline. The service sets the alarm, then reads the buckets'
//! earliest deadlines again before it sleeps. All four accesses are `SeqCst`, so in their single order one of the two
//! stores comes first, and whoever stores second reads the other's: the service does not sleep, or it is rung.
//!
//! A registering thread whose deadline is not its bucket's earliest stores nothing; the thread that stored the earlier
//! one is the one that rings.

use crate::clock::Timestamp;
use crate::queue::critical_section::Policy;
use crate::queue::store::WaiterListStore;
use crate::sync::{AtomicU64, Ordering};

/// The alarm of one store's service.
#[derive(Debug)]
pub struct Alarm {
    set_to: AtomicU64,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { set_to: AtomicU64::new(Timestamp::NEVER.as_nanos()) }
    }
}

impl Alarm {
    /// Times out the promises of `store` that are due and gives the moment until which it may
    /// sleep, unless it is rung before.
    pub fn set<P: Policy>(&self, store: &WaiterListStore<P>) -> Timestamp {
        loop {
            let next = store.expire();
            self.set_to.store(next.as_nanos(), Ordering::SeqCst);
            if store.earliest_deadline() >= next {
                return next;
            }
        }
    }

    /// Whether a thread that has just lined up a promise with this deadline must ring the service.
    pub fn is_later_than(&self, deadline: Timestamp) -> bool {
        deadline.as_nanos() < self.set_to.load(Ordering::SeqCst)
    }
}
