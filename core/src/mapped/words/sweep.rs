//! What a dead process has left in a record.

use super::owner::{HELD, is_changing};
use super::waits::{packed, unpacked};
use super::{SLOTS, SharedWord, update};
use crate::lock::{UNLOCKED, WRITING};
use crate::mapped::ProcessId;
use crate::sync::Ordering;

impl SharedWord<'_> {
    pub(super) fn sweep(&self, dead: ProcessId) {
        let record = self.record();
        let (index, mask) = (dead.index(), dead.mask());
        let owner = record.owner.load(Ordering::SeqCst);
        if owner == dead.packed() | HELD {
            record.died.store(1, Ordering::SeqCst);
            self.step();
            self.word.store(UNLOCKED, Ordering::SeqCst);
            let _ = self.change_owner(owner, 0);
        } else if (is_changing(owner, dead) || record.shares[index].load(Ordering::SeqCst) != 0)
            && self.begin_sweep(dead)
        {
            if record.shares[index].load(Ordering::SeqCst) == WRITING {
                record.died.store(1, Ordering::SeqCst);
            }
            self.step();
            record.shares[index].store(0, Ordering::SeqCst);
            self.sum_up();
            self.end();
        }
        record.waiting.fetch_and(!mask, Ordering::SeqCst);
        self.step();
        self.end_turn(index);
        self.pass_on_notifications(index);
        // Whatever a sweeper that died has left undone.
        let mut waiting = record.waiting.load(Ordering::SeqCst);
        while waiting != 0 {
            let process = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            if process < SLOTS {
                self.table.tell(self.index, process, self.peers);
            }
        }
    }

    /// Passes on what a dead process had not delivered. A sweeper's death may repeat one, but loses none.
    fn pass_on_notifications(&self, dead: usize) {
        let waits = &self.record().waits[dead];
        // From now on nobody notifies its waiters.
        let before = update(waits, |waits| Some(packed(0, unpacked(waits).1)));
        let (_, notified) = unpacked(before.unwrap_or_default());
        for left in (0..notified).rev() {
            self.step();
            let given = (0..SLOTS).filter(|&process| process != dead).any(|process| self.notify_in(process, 1) > 0);
            self.step();
            waits.store(if given { packed(0, left) } else { 0 }, Ordering::SeqCst);
            if !given {
                break;
            }
        }
    }
}
