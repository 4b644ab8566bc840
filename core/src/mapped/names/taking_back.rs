//! Takes locks back: from holders that are dead, or late; and turns from processes that do not use them.

use super::entry::{DIED, EXCLUSIVE, Entry, SHARERS, Turn, exclusive_holder, left, permits_in};
use super::titles::{WRITTEN, phase};
use super::{MOST_PROCESSES, Mode, Names, World, set};
use crate::mapped::ProcessId;
use crate::sync::Ordering::SeqCst;

impl<W: World> Names<'_, W> {
    /// Whether the state has a limit that is over.
    pub(super) fn is_over(&self, state: u64) -> bool {
        self.left(state) == Some(0)
    }

    /// Without a limit, the clock is not read.
    fn left(&self, state: u64) -> Option<u64> {
        left(state, 0)?;
        left(state, self.world.now())
    }

    /// Ends a limited hold or a turn that is over. Returns for how many milliseconds one lasts.
    pub fn heed(&self, position: usize) -> Option<u64> {
        let entry = &self.entries[position];
        let state = entry.state.load(SeqCst);
        if state & EXCLUSIVE != 0 {
            let left = self.left(state)?;
            if left == 0 {
                self.end(position, state);
            }
            return Some(left).filter(|left| *left > 0);
        }
        let turn = entry.turn.load(SeqCst);
        let (owner, now) = (Turn::owner(turn)?, self.world.now());
        if Turn::is_valid(turn, now) {
            return Some((turn >> 8) - now);
        }
        // If the owner could not use it, whoever frees the lock or a permit gives the next turn.
        let could_use = if permits_in(state) == 0 {
            state & SHARERS == 0 || entry.readers.load(SeqCst) & 1 << owner != 0
        } else {
            self.has_free_permit(entry)
        };
        if could_use && self.pass_over(entry, turn, owner) {
            self.give_turn(position, owner, 0);
        }
        None
    }

    /// Ends the turn of a process that does not use it. Returns whether it was not ended before.
    pub(super) fn pass_over(&self, entry: &Entry, turn: u64, owner: usize) -> bool {
        let is_ended = entry.turn.compare_exchange(turn, 0, SeqCst, SeqCst).is_ok();
        if is_ended {
            // It waits anew, once it goes on: also if it does just now.
            set(&entry.waiting, 1 << owner, false);
            self.world.ring(owner);
        }
        is_ended
    }

    /// Takes the lock from a dead or late holder.
    pub(super) fn end(&self, position: usize, state: u64) {
        if self.entries[position].state.compare_exchange(state, DIED, SeqCst, SeqCst).is_ok() {
            let after = exclusive_holder(state).map_or(MOST_PROCESSES - 1, ProcessId::index);
            self.give_turn(position, after, 0);
        }
    }

    /// Takes back all that a process has left, which is dead: that can be interrupted, and done again.
    pub fn sweep(&self, dead: ProcessId) {
        self.complete();
        for (position, (title, entry)) in self.titles.iter().zip(self.entries).enumerate() {
            let found = title.load(SeqCst);
            if found == 0 {
                continue;
            }
            if phase(found) == WRITTEN {
                self.drop_written(position, found, dead);
                continue;
            }
            set(&entry.waiting, dead.mask(), false);
            self.free(position, dead, Mode::Shared, false);
            let state = entry.state.load(SeqCst);
            if exclusive_holder(state) == Some(dead) {
                self.end(position, state);
            }
        }
        // It may have given a lock back, or had the turn, and not rung anybody. Permits are awaited at another entry.
        for (position, entry) in self.entries.iter().enumerate() {
            if entry.state.load(SeqCst) & EXCLUSIVE == 0 {
                self.give_turn(position, dead.index(), 0);
            }
        }
    }
}
