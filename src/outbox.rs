//! What is on its way to an agent: the outcomes of its asynchronous waits, and nudges for its claims.
//!
//! Any thread puts mail in, in the critical section in which it removed or nudged the waiter; the lock in here is the
//! last in the lock order (invariant 6). Whoever finds the outbox empty also rings, later, with no lock held: so a
//! thousand outcomes cost one job on the agent's event loop (invariant 5). The agent takes all of it at once.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::line::Request;
use crate::location::Location;
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

/// What an agent finds in its outbox.
#[derive(Debug, Default)]
pub struct Mail {
    /// Waits that are over.
    pub settlements: Vec<Settlement>,
    /// The slots of claims that are to try now. Looked at first.
    pub nudges: Vec<u32>,
    /// By slot, the settlements in here that are of claims. Of plain waits, of which there may be a million, it knows nothing.
    claims: HashMap<u32, ClaimSettled, FxBuildHasher>,
}

/// The settlement of a claim.
#[derive(Debug)]
struct ClaimSettled {
    /// Where it is among the settlements. Only known until the mail is taken.
    place: usize,
    /// What it acquired.
    acquired: Option<(Location, Request)>,
}

impl Mail {
    /// Puts in the outcome of a claim of the word at `location`.
    pub fn settle_claim(&mut self, slot: u32, result: WaitResult, location: Location, request: Request) {
        let acquired = result.is_acquired().then_some((location, request));
        self.claims.insert(slot, ClaimSettled { place: self.settlements.len(), acquired });
        self.settlements.push(Settlement { slot, result });
    }

    /// What `settlements`, some of those in here, acquired: each with its slot, in their order.
    pub fn acquired_among(&self, settlements: &[Settlement]) -> impl Iterator<Item = (u32, Location, Request)> {
        let acquired = settlements.iter().filter(|settlement| settlement.result.is_acquired());
        acquired.filter_map(|&Settlement { slot, .. }| {
            let (location, request) = self.claims.get(&slot)?.acquired?;
            Some((slot, location, request))
        })
    }

    /// Everything that the claims settled in here acquired: if the agent ends before it takes its mail, that is to be passed on.
    pub fn acquired(&self) -> impl Iterator<Item = (Location, Request)> {
        self.claims.values().filter_map(|claim| claim.acquired)
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
        // Clearing a table costs what it has room for.
        if !self.claims.is_empty() {
            self.claims.clear();
        }
    }
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

    /// Puts in the outcome of a wait. True if the caller is to ring.
    pub(crate) fn settle(&self, slot: u32, result: WaitResult) -> bool {
        self.put(|mail| mail.settlements.push(Settlement { slot, result }))
    }

    /// Puts in the outcome of a claim of the word at `location`. True if the caller is to ring.
    pub(crate) fn settle_claim(&self, slot: u32, result: WaitResult, location: Location, request: Request) -> bool {
        self.put(|mail| mail.settle_claim(slot, result, location, request))
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

    /// Takes back how the claim in `slot` ended, and what it acquired, if the agent has not taken that mail: as if the claim had
    /// never been. How a plain wait ended is not taken back: somebody counts on its notification.
    ///
    /// However much mail there is, the cost is the same: what is left is a settlement that says nothing.
    pub fn recall(&self, slot: u32) -> Option<(WaitResult, Option<(Location, Request)>)> {
        let mut mail = lock(&self.mail);
        let ClaimSettled { place, acquired } = mail.claims.remove(&slot)?;
        // Drops out when the agent decides what is due, since there is no wait in the slot, or one that is not marked as due.
        let result = std::mem::replace(&mut mail.settlements[place].result, WaitResult::Due);
        Some((result, acquired))
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
