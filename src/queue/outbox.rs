//! What is on its way to an agent: the outcomes of its asynchronous waits, and nudges for its claims.
//!
//! Any thread puts mail in, in the critical section in which it removed or nudged the waiter; the lock in here is the
//! last in the lock order (invariant 6). Whoever finds the outbox empty also rings, later, with no lock held: so a
//! thousand outcomes cost one job on the agent's event loop (invariant 5). The agent takes all of it at once.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::lock::line::Request;
use crate::queue::location::Location;
use crate::queue::store::WaitResult;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// One asynchronous wait that is over: which one of the agent's, and how it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settlement {
    /// The number that the agent gave to its wait.
    pub slot: u32,
    /// How it ended.
    pub result: WaitResult,
}

/// What an agent finds in its outbox.
#[derive(Debug, Default)]
pub struct Mail {
    /// Waits that are over.
    pub settlements: Vec<Settlement>,
    /// The slots of claims that are to try now. Looked at first.
    pub nudges: Vec<u32>,
    /// What the settlements in here acquired, in their order; `None` what was recalled. If the agent ends before it takes its
    /// mail, that is to be passed on.
    pub acquired: Vec<Option<(Location, Request)>>,
    /// Where what can be recalled is. Only made when something is.
    index: Option<Index>,
}

/// By slot, the places of the settlements that can be recalled, and of what those acquired.
type Index = HashMap<u32, (usize, Option<usize>), FxBuildHasher>;

impl Mail {
    /// Puts in the outcome of a wait, and what it acquired.
    #[inline]
    pub fn settle(&mut self, slot: u32, result: WaitResult, acquired: Option<(Location, Request)>) {
        if is_recallable(result)
            && let Some(index) = &mut self.index
        {
            index.insert(slot, (self.settlements.len(), acquired.is_some().then_some(self.acquired.len())));
        }
        self.settlements.push(Settlement { slot, result });
        if acquired.is_some() {
            self.acquired.push(acquired);
        }
    }

    fn index(&mut self) -> &mut Index {
        let settlements = &self.settlements;
        self.index.get_or_insert_with(|| {
            let mut acquired = 0..;
            let recallable = settlements.iter().enumerate().filter(|(_, settlement)| is_recallable(settlement.result));
            let entry = |(place, settlement): (usize, &Settlement)| {
                (settlement.slot, (place, if settlement.result.is_acquired() { acquired.next() } else { None }))
            };
            recallable.map(entry).collect()
        })
    }

    fn is_empty(&self) -> bool {
        self.settlements.is_empty() && self.nudges.is_empty()
    }

    /// Forgets everything, and keeps the memory if it is not much.
    pub fn clear(&mut self) {
        const RETAINED: usize = 4096;
        if self.settlements.capacity() > RETAINED {
            *self = Self::default();
        }
        self.settlements.clear();
        self.nudges.clear();
        self.acquired.clear();
        self.index = None;
    }
}

fn is_recallable(result: WaitResult) -> bool {
    result.is_acquired() || result == WaitResult::TimedOut
}

/// Makes the agent look into its outbox; called from any thread.
pub type Ring = Box<dyn Fn() + Send + Sync>;

/// The mail that an agent has not taken yet.
pub struct Outbox {
    mail: Mutex<Mail>,
    has_mail: AtomicBool,
    ring: Mutex<Option<Ring>>,
}

impl Outbox {
    /// An outbox whose agent is told by `ring`.
    pub fn new(ring: Ring) -> Self {
        Self { mail: Mutex::new(Mail::default()), has_mail: AtomicBool::new(false), ring: Mutex::new(Some(ring)) }
    }

    /// Puts mail in. True if the outbox was empty: then the caller rings after its critical section.
    fn put(&self, put: impl FnOnce(&mut Mail)) -> bool {
        let mut mail = lock(&self.mail);
        let was_empty = mail.is_empty();
        put(&mut mail);
        if was_empty {
            self.has_mail.store(true, Ordering::Release);
        }
        was_empty
    }

    /// Puts in the outcome of a wait that has acquired nothing. True if the caller is to ring.
    pub(crate) fn settle(&self, slot: u32, result: WaitResult) -> bool {
        self.put(|mail| mail.settle(slot, result, None))
    }

    /// Puts in that a claim has acquired what it asked for. True if the caller is to ring.
    pub(crate) fn grant(&self, slot: u32, result: WaitResult, acquired: (Location, Request)) -> bool {
        self.put(|mail| mail.settle(slot, result, Some(acquired)))
    }

    /// Puts in a nudge. True if the caller is to ring.
    pub(crate) fn nudge(&self, slot: u32) -> bool {
        self.put(|mail| mail.nudges.push(slot))
    }

    /// Moves everything that is in here into `taken`, which the caller has emptied.
    pub fn take(&self, taken: &mut Mail) {
        let mut mail = lock(&self.mail);
        self.has_mail.store(false, Ordering::Relaxed);
        std::mem::swap(&mut *mail, taken);
    }

    /// Takes back that the wait in `slot` acquired something, and what, or that its time was over, if the agent has not taken
    /// that mail: as if the wait had never been. A notification is not taken back: somebody counts on it.
    ///
    /// Takes the same time however much mail there is, but for the first time, when it is looked through. What is left is a
    /// settlement that says nothing: [`WaitResult::Due`] of a wait that is not.
    pub fn recall(&self, slot: u32) -> Option<(WaitResult, Option<(Location, Request)>)> {
        let mut mail = lock(&self.mail);
        let (place, acquired) = mail.index().remove(&slot)?;
        let result = std::mem::replace(&mut mail.settlements[place].result, WaitResult::Due);
        Some((result, acquired.and_then(|place| mail.acquired[place].take())))
    }

    /// Whether something is in here. Exact for what the calling thread put in itself.
    pub fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
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
