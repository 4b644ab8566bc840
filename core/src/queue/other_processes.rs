//! Other processes that have the same memory: they count this one's waiters, and notify them.

use std::sync::OnceLock;

use super::{CriticalSection, Location, Policy, Successor, WaitResult, WaiterKey};

static OTHERS: OnceLock<&'static dyn OtherProcesses> = OnceLock::new();

/// Sets who knows the other processes. Only the first call counts.
pub fn connect(others: &'static dyn OtherProcesses) {
    let _ = OTHERS.set(others);
}

/// Returns the other processes, if they may have the word at `location`.
#[inline]
pub(crate) fn at(location: Location) -> Option<&'static dyn OtherProcesses> {
    OTHERS.get().copied().filter(|others| others.share(location))
}

/// Whether other processes may have the word.
#[inline]
pub fn is_shared(location: Location) -> bool {
    at(location).is_some()
}

/// The other processes. Called within critical sections; nothing here waits for another lock of this process.
pub trait OtherProcesses: Sync {
    /// Whether other processes may have the word. Called for each location, so it must be quick.
    fn share(&self, location: Location) -> bool;

    /// Returns what the processes know of a word's waiters; `makes` its record. `None`: it has none, or there is no room.
    fn waits_at(&self, location: Location, makes: bool) -> Option<Box<dyn SharedWaits>>;

    /// Begins or ends to look at a word without a record. Its waiters are notified once its value has changed.
    fn poll(&self, location: Location, polls: bool);
}

/// What the processes know of a word's waiters.
pub trait SharedWaits {
    /// Says that this process has claims, before their last attempt.
    fn begin_claims(&self);

    /// Says that this process has no claim any more. If it is left with a turn, that goes on.
    fn end_claims(&self);

    /// Counts a waiter, before it reads the word.
    fn enter(&self);

    /// Uncounts a waiter. Returns whether it takes a notification with it: all that are left are notified.
    #[must_use]
    fn leave(&self) -> bool;

    /// Uncounts a waiter that another process has notified. Returns false if there is none.
    #[must_use]
    fn take_notification(&self) -> bool;

    /// Notifies up to `count` waiters, process by process; `here` does so in this one. Returns how many.
    fn notify(&self, count: usize, here: &mut dyn FnMut(usize) -> usize) -> usize;
}

impl<P: Policy> CriticalSection<'_, P> {
    /// Tells other processes of a waiter, before it reads the word.
    #[cold]
    pub(super) fn enters(others: &dyn OtherProcesses, location: Location, has_claim: bool) {
        match others.waits_at(location, true) {
            Some(waits) if has_claim => waits.begin_claims(),
            Some(waits) => waits.enter(),
            None => others.poll(location, true),
        }
    }

    /// Tells other processes that a waiter has left.
    #[cold]
    pub(super) fn leaves(&mut self, others: &dyn OtherProcesses, location: Location, had_claim: bool) {
        self.took_notification = false;
        match others.waits_at(location, false) {
            Some(waits) if !had_claim => self.took_notification = self.delivers || waits.leave(),
            Some(waits) if self.lists.policy.claims(location) == 0 => waits.end_claims(),
            None if self.lists.waiters.count(location) == 0 => others.poll(location, false),
            _ => {}
        }
    }

    /// Removes a waiter that gives up. Returns false if it has been notified by another process: then it is settled.
    pub(super) fn give_up(&mut self, key: WaiterKey) -> (Successor, bool) {
        let (listed, successor) = self.unlist(key);
        if self.took_notification {
            self.settle(listed.waiter, WaitResult::Ok);
        }
        (successor, !self.took_notification)
    }

    /// Notifies the first waiters here that other processes have notified.
    pub(super) fn deliver(&mut self, location: Location) {
        let Some(waits) = at(location).and_then(|others| others.waits_at(location, false)) else { return };
        loop {
            let first = self.waiters(location).find(|&key| self.claim(key).is_none());
            let Some(key) = first else { return };
            let is_due = self.is_due(key);
            self.delivers = !is_due && waits.take_notification();
            if !is_due && !self.delivers {
                return;
            }
            let successor = self.dequeue(key, if is_due { WaitResult::TimedOut } else { WaitResult::Ok });
            self.delivers = false;
            if successor == Successor::ToBeWoken {
                P::wake_successor(self, location);
            }
        }
    }
}
