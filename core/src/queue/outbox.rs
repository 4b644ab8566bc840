//! Results on their way to an agent: of its asynchronous waits, retries of its claims, and its losses.
//!
//! What a claim was granted is not here: its agent has that noted, by the slot.
//!
//! Any thread puts mail in, in the critical section in which it removes or wakes the waiter; the outbox's lock is the
//! last in the lock order (invariant 6). A thread that finds the outbox empty rings it afterwards, with no lock held:
//! so a thousand results cost one job on the agent's event loop (invariant 5). The agent takes all of the mail at once.

use rustc_hash::FxHashMap;

use super::WaitResult;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// The end of an asynchronous wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settlement {
    /// The slot of the wait in its agent's table.
    pub slot: u32,
    pub result: WaitResult,
}

/// The contents of an outbox.
#[derive(Debug, Default)]
pub struct Mail {
    pub settlements: Vec<Settlement>,
    /// The slots of claims that are to retry. The agent looks at them first.
    pub retries: Vec<u32>,
    /// The grants that were taken from the agent since, by numbers that the grants know. The agent looks at these last:
    /// such a grant is in this mail, or in an earlier one.
    pub losses: Vec<u32>,
    /// How many settlements were grants.
    granted: usize,
    /// The places of the settlements that can be revoked, by slot. Made at the first revoke.
    index: Option<FxHashMap<u32, usize>>,
    /// Tells an outbox's mail from earlier mail.
    number: u64,
}

impl Mail {
    #[inline]
    pub fn settle(&mut self, slot: u32, result: WaitResult) {
        if is_recallable(result)
            && let Some(index) = &mut self.index
        {
            index.insert(slot, self.settlements.len());
        }
        self.granted += usize::from(result.is_acquired());
        self.settlements.push(Settlement { slot, result });
    }

    /// Removes everything. Keeps the allocations if they are small.
    pub fn clear(&mut self) {
        const RETAINED: usize = 4096;
        if self.settlements.capacity().max(self.losses.capacity()) > RETAINED {
            *self = Self::default();
        }
        self.settlements.clear();
        self.retries.clear();
        self.losses.clear();
        (self.granted, self.index) = (0, None);
    }
}

fn is_recallable(result: WaitResult) -> bool {
    result.is_acquired() || result == WaitResult::TimedOut
}

/// How far a reader has read the grants in an outbox.
#[derive(Debug, Default)]
pub struct Reading {
    mail: u64,
    settlements: usize,
}

/// Makes the agent look into its outbox. Called from any thread.
pub(crate) type Bell = Box<dyn Fn() + Send + Sync>;

/// Whether a thread that puts mail in rings the outbox afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Ring {
    /// The outbox was empty.
    Needed,
    /// The thread that put the first mail in rings.
    UnderWay,
}

/// The mail that an agent has not taken yet.
pub struct Outbox {
    mail: Mutex<Mail>,
    /// Changed under the lock of the mail.
    has_mail: AtomicBool,
    bell: Mutex<Option<Bell>>,
}

impl Outbox {
    pub fn new(bell: Bell) -> Self {
        Self { mail: Mutex::new(Mail::default()), has_mail: AtomicBool::new(false), bell: Mutex::new(Some(bell)) }
    }

    fn put(&self, put: impl FnOnce(&mut Mail)) -> Ring {
        let mut mail = lock(&self.mail);
        put(&mut mail);
        if self.has_mail.load(Ordering::Relaxed) {
            return Ring::UnderWay;
        }
        self.has_mail.store(true, Ordering::Release);
        Ring::Needed
    }

    pub(crate) fn settle(&self, slot: u32, result: WaitResult) -> Ring {
        self.put(|mail| mail.settle(slot, result))
    }

    pub fn retry(&self, slot: u32) -> Ring {
        self.put(|mail| mail.retries.push(slot))
    }

    /// Puts in that a grant was taken from the agent.
    pub(crate) fn lose(&self, number: u32) -> Ring {
        self.put(|mail| mail.losses.push(number))
    }

    /// Moves all mail into `taken`, which the caller has emptied.
    pub fn take(&self, taken: &mut Mail) {
        let mut mail = lock(&self.mail);
        self.has_mail.store(false, Ordering::Relaxed);
        std::mem::swap(&mut *mail, taken);
        mail.number = taken.number + 1;
    }

    /// Revokes a wait's grant or timeout before the agent takes it. Returns it; it stays without effect, as
    /// [`WaitResult::Due`]. A notification is not revoked, since `notify` has counted it.
    ///
    /// The first call looks through the mail, each further one takes constant time.
    pub fn revoke(&self, slot: u32) -> Option<WaitResult> {
        let Mail { settlements, index, .. } = &mut *lock(&self.mail);
        let index = index.get_or_insert_with(|| {
            let all = settlements.iter().enumerate().filter(|(_, settlement)| is_recallable(settlement.result));
            all.map(|(place, settlement)| (settlement.slot, place)).collect()
        });
        let place = index.remove(&slot)?;
        Some(std::mem::replace(&mut settlements[place].result, WaitResult::Due))
    }

    /// Calls `found` with each grant that this reading has not found yet.
    ///
    /// It has its slot, and its place in the mail. Returns whether the mail is that of the reading's earlier calls.
    pub fn read_grants(&self, reading: &mut Reading, mut found: impl FnMut(u32, usize)) -> bool {
        let mail = lock(&self.mail);
        let is_same = reading.mail == mail.number;
        if !is_same {
            *reading = Reading { mail: mail.number, settlements: 0 };
        }
        let all = mail.settlements.iter().enumerate().skip(reading.settlements);
        all.filter(|(_, each)| each.result.is_acquired()).for_each(|(place, each)| found(each.slot, place));
        reading.settlements = mail.settlements.len();
        is_same
    }

    /// Returns a function that tells whether a found grant is here.
    ///
    /// The function has the outbox locked.
    pub fn still_has(&self, reading: &Reading) -> impl Fn(usize) -> bool {
        let mail = lock(&self.mail);
        let is_same = reading.mail == mail.number;
        move |place| is_same && mail.settlements.get(place).is_some_and(|each| each.result.is_acquired())
    }

    /// Counts the grants since the agent took its mail, revoked ones, too.
    pub fn granted(&self) -> usize {
        lock(&self.mail).granted
    }

    /// Whether there is mail. Exact for mail of the calling thread.
    pub fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    /// Whether the agent's mail is nothing but grants, and retries of claims. It is about to take it.
    pub fn has_only_successes(&self) -> bool {
        let mail = lock(&self.mail);
        mail.losses.is_empty() && mail.settlements.iter().all(|each| each.result.is_acquired())
    }

    /// Makes the agent look into its outbox, unless it has ended. Called with no other lock held.
    pub fn ring(&self) {
        if let Some(bell) = &*lock(&self.bell) {
            bell();
        }
    }

    /// Closes the outbox of an agent that ends: its bell does not ring, and never will (invariant 7).
    pub fn close(&self) {
        *lock(&self.bell) = None;
    }
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Outbox").field("has_mail", &self.has_mail()).finish_non_exhaustive()
    }
}
