//! The service's next deadline, agreed with the threads that append promises.
//!
//! # Why no deadline is missed
//! A registering thread stores its bucket's earliest deadline (in the critical section that appends the waiter), then
//! reads the alarm, and rings if the alarm is set to a later moment than its own deadline. The service sets the alarm,
//! then reads the buckets' earliest deadlines again before it sleeps. All four accesses are `SeqCst`, so in their
//! single order one of the two stores comes first, and the thread that stores second reads the other's store: the
//! service does not sleep, or it is rung.
//!
//! A thread whose deadline is not its bucket's earliest stores nothing; the thread that stored the earlier one rings.

use crate::clock::Timestamp;
use crate::queue::Policy;
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
    /// Times out the due promises of `store`. Returns until when the service may sleep, unless it is rung before.
    pub fn set<P: Policy>(&self, store: &WaiterListStore<P>) -> Timestamp {
        loop {
            let next = store.expire();
            self.set_to.store(next.as_nanos(), Ordering::SeqCst);
            if store.earliest_deadline() >= next {
                return next;
            }
        }
    }

    /// Whether a thread that appended a promise with this deadline must ring.
    pub fn is_later_than(&self, deadline: Timestamp) -> bool {
        deadline.as_nanos() < self.set_to.load(Ordering::SeqCst)
    }
}
