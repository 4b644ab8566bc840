//! Waiters that leave, where other processes count and notify them.

use super::other_processes::OtherProcesses;
use super::{CriticalSection, Location, Policy, Successor, WaitResult, WaiterKey, other_processes};

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
        let Some(waits) = other_processes::waits_at(location) else { return };
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
