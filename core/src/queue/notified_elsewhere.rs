//! Waiters that leave, where other processes count and notify them.

use super::{CriticalSection, Location, Policy, Successor, WaitResult, WaiterKey, other_processes};

impl<P: Policy> CriticalSection<'_, P> {
    /// Tells other processes that a waiter has left.
    #[cold]
    pub(super) fn leaves(&mut self, location: Location, had_claim: bool) {
        let Some(others) = other_processes::at(location) else { return };
        if !had_claim {
            self.took_notification =
                if self.delivers { others.take_notification(location) } else { others.leave(location) };
        } else if self.lists.policy.claims(location) == 0 {
            others.end_claims(location);
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
        let Some(others) = other_processes::at(location) else { return };
        loop {
            let first = self.waiters(location).find(|&key| self.claim(key).is_none());
            let Some(key) = first else { return };
            let is_due = self.is_due(key);
            if !is_due && !others.is_notified(location) {
                return;
            }
            self.delivers = !is_due;
            let successor = self.dequeue(key, if is_due { WaitResult::TimedOut } else { WaitResult::Ok });
            self.delivers = false;
            if successor == Successor::ToBeWoken {
                P::wake_successor(self, location);
            }
        }
    }
}
