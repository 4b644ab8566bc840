//! What is on its way to an agent: the outcomes of its asynchronous waits.
//!
//! Any thread puts outcomes in, in the critical section in which it removed the waiter; the lock in here is the last in
//! the lock order (invariant 6). Whoever finds the outbox empty also rings, later, with no lock held: so a thousand
//! outcomes cost one job on the agent's event loop (invariant 5). The agent takes them all at once.

use crate::store::WaitResult;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// One asynchronous wait that is over: which one of the agent's, and how it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settlement {
    /// The number that the agent gave to its wait.
    pub slot: u32,
    /// How it ended.
    pub result: WaitResult,
}

/// Makes the agent look into its outbox; called from any thread.
pub type Ring = Box<dyn Fn() + Send + Sync>;

/// The outcomes that an agent has not taken yet.
pub struct Outbox {
    settlements: Mutex<Vec<Settlement>>,
    mail: AtomicBool,
    ring: Mutex<Option<Ring>>,
}

impl Outbox {
    /// An outbox whose agent is told by `ring`.
    pub fn new(ring: Ring) -> Self {
        Self { settlements: Mutex::new(Vec::new()), mail: AtomicBool::new(false), ring: Mutex::new(Some(ring)) }
    }

    /// Puts in an outcome. True if the outbox was empty: then the caller rings after its critical section.
    pub(crate) fn push(&self, settlement: Settlement) -> bool {
        let mut settlements = lock(&self.settlements);
        let was_empty = settlements.is_empty();
        settlements.push(settlement);
        if was_empty {
            self.mail.store(true, Ordering::Release);
        }
        was_empty
    }

    /// Moves everything that is in here into `taken`, which the caller has emptied.
    pub fn take(&self, taken: &mut Vec<Settlement>) {
        let mut settlements = lock(&self.settlements);
        self.mail.store(false, Ordering::Relaxed);
        std::mem::swap(&mut *settlements, taken);
    }

    /// Whether something is in here. Exact for what the calling thread put in itself.
    pub fn has_mail(&self) -> bool {
        self.mail.load(Ordering::Acquire)
    }

    /// Makes the agent look into its outbox, unless it has ended. Called with no other lock held.
    pub fn ring(&self) {
        if let Some(ring) = &*lock(&self.ring) {
            ring();
        }
    }

    /// The agent ends: once this returns, its `ring` is not running and never runs again (invariant 7).
    pub fn close(&self) {
        *lock(&self.ring) = None;
    }
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Outbox").field("has_mail", &self.has_mail()).finish_non_exhaustive()
    }
}
