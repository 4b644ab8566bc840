//! Takes locks back: from holders that are dead, or late.

use super::entry::{DIED, EXCLUSIVE, exclusive_holder, left};
use super::titles::{WRITTEN, phase};
use super::{MOST_PROCESSES, Mode, Names, Place, World, set};
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

    /// Returns how many milliseconds a limited hold lasts. Ends it if it is over.
    pub fn look_at_limit(&self, place: Place) -> Option<u64> {
        let state = self.entries[place.position].state.load(SeqCst);
        let left = self.left(state)?;
        if left == 0 {
            self.end(place.position, state);
        }
        Some(left).filter(|left| *left > 0 && self.is_here(place))
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
