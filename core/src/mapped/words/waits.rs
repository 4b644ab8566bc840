//! Waiters without a claim, and notifications from one process to another.

use super::{SLOTS, SharedWord, update};
use crate::lock::UNLOCKED;
use crate::queue::other_processes::SharedWaits;
use crate::sync::{AtomicU64, Ordering, fence};

/// Takes the number of waiters and of notifications apart.
pub(super) const fn unpacked(waits: u64) -> (u32, u32) {
    (waits as u32, (waits >> 32) as u32)
}

pub(super) const fn packed(waiters: u32, notified: u32) -> u64 {
    (notified as u64) << 32 | waiters as u64
}

impl SharedWord<'_> {
    fn waits(&self) -> &AtomicU64 {
        &self.record().waits[self.me().index()]
    }

    /// Notifies up to `count` waiters of a process. Returns how many.
    pub(super) fn notify_in(&self, process: usize, count: usize) -> usize {
        let waits = &self.record().waits[process];
        let free = |waits| {
            let (waiters, notified) = unpacked(waits);
            waiters.saturating_sub(notified).min(u32::try_from(count).unwrap_or(u32::MAX))
        };
        let before = update(waits, |waits| (free(waits) > 0).then(|| waits + packed(0, free(waits))));
        let Some(before) = before else { return 0 };
        self.step();
        self.table.tell(self.index, process, self.peers);
        free(before) as usize
    }

    /// Notifies a waiter of another process: the word has been freed, and no claim is in its line.
    pub(super) fn notify_elsewhere(&self) {
        if self.record().notifies.load(Ordering::SeqCst) != 0 {
            self.notify(1, &mut |_| 0);
        }
    }
}

impl SharedWaits for SharedWord<'_> {
    fn begin_claims(&self) {
        self.record().waiting.fetch_or(self.me().mask(), Ordering::SeqCst);
    }

    fn end_claims(&self) {
        self.step();
        self.record().waiting.fetch_and(!self.me().mask(), Ordering::SeqCst);
        self.step();
        self.end_turn(self.me().index());
        if self.locker().is_none() {
            self.pass();
        }
    }

    fn enter(&self) {
        self.record().notifies.store(1, Ordering::SeqCst);
        self.waits().fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    fn leave(&self) -> bool {
        let before = update(self.waits(), |waits| {
            let (waiters, notified) = unpacked(waits);
            let waiters = waiters.saturating_sub(1);
            Some(packed(waiters, notified.min(waiters)))
        });
        before.is_some_and(|waits| {
            let (waiters, notified) = unpacked(waits);
            notified > 0 && notified >= waiters
        })
    }

    fn take_notification(&self) -> bool {
        let before = update(self.waits(), |waits| {
            let (waiters, notified) = unpacked(waits);
            (waiters > 0 && notified > 0).then(|| packed(waiters - 1, notified - 1))
        });
        before.is_some()
    }

    fn notify(&self, count: usize, here: &mut dyn FnMut(usize) -> usize) -> usize {
        let first = self.record().first_notified.load(Ordering::Relaxed) as usize;
        let mut left = count;
        for process in (0..SLOTS).map(|step| (first + step) % SLOTS) {
            let woken = if process == self.me().index() { here(left) } else { self.notify_in(process, left) };
            left -= woken.min(left);
            if woken > 0 && left == 0 {
                self.record().first_notified.store(((process + 1) % SLOTS) as u32, Ordering::Relaxed);
                break;
            }
        }
        // Code that uses the bare word may have freed it, and tells so.
        if left > 0 && self.word.load(Ordering::SeqCst) == UNLOCKED {
            self.ring_next();
        }
        count - left
    }
}
