//! Whose turn it is among the processes that wait for a word.
//!
//! A process that frees a word sets the turn of the next process that waits, in the order of their slots. For [`TENURE`]
//! the word is still free for all, so a word goes to another processor seldom. Then only that process may take it, until
//! [`LIMIT`] is over: it may be stopped. If it has answered that it found the word held, it is waited for without a
//! limit, until the word is freed again.

use super::SharedWord;
use crate::lock::UNLOCKED;
use crate::sync::Ordering;

/// How long a process may keep a word for which others wait: microseconds.
const TENURE: u64 = 200;
/// How long a free word waits for the process whose turn it is: microseconds.
const LIMIT: u64 = 20_000;

const INDEX: u64 = 0x7f;
const ANSWERED: u64 = 0x80;
const TIME: u32 = 8;

/// A turn: of the process in a slot, from a moment on (microseconds). As one number, 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Turn {
    index: usize,
    answered: bool,
    begin: u64,
}

impl Turn {
    const fn new(index: usize, begin: u64) -> Self {
        Self { index, answered: false, begin }
    }

    /// Reads the number in memory: it is input.
    const fn from_packed(packed: u64) -> Option<Self> {
        match packed & INDEX {
            0 | 65.. => None,
            number => {
                Some(Self { index: number as usize - 1, answered: packed & ANSWERED != 0, begin: packed >> TIME })
            }
        }
    }

    const fn packed(self) -> u64 {
        let answered = if self.answered { ANSWERED } else { 0 };
        self.begin << TIME | answered | (self.index as u64 + 1)
    }

    const fn has_begun(self, now: u64) -> bool {
        now >= self.begin
    }

    const fn is_over(self, now: u64) -> bool {
        !self.answered && now >= self.begin.saturating_add(LIMIT)
    }
}

/// Returns the first index of `mask` behind `index`, in a circle.
const fn next_in(mask: u64, index: usize) -> usize {
    let behind = mask & (u64::MAX << 1).wrapping_shl(index as u32);
    (if index < 63 && behind != 0 { behind } else { mask }).trailing_zeros() as usize
}

impl SharedWord<'_> {
    fn turn(&self) -> (u64, Option<Turn>) {
        let packed = self.record().turn.load(Ordering::SeqCst);
        (packed, Turn::from_packed(packed))
    }

    fn set_turn(&self, before: u64, turn: Option<Turn>) {
        self.step();
        let packed = turn.map_or(0, Turn::packed);
        let _ = self.record().turn.compare_exchange(before, packed, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Ends the turn, if it is that of this slot's process.
    pub(super) fn end_turn(&self, index: usize) {
        let (before, turn) = self.turn();
        if turn.is_some_and(|turn| turn.index == index) {
            self.set_turn(before, None);
        }
    }

    /// Whether another process has waited for long enough.
    pub(super) fn has_turn_elsewhere(&self) -> bool {
        self.others_waiting() != 0 && {
            let now = self.peers.now();
            self.next_turn(now, false).is_some_and(|turn| turn.has_begun(now))
        }
    }

    /// Whether this process may take the word: not while it is the turn of another one that waits.
    pub(super) fn is_open(&self) -> bool {
        let (before, Some(turn)) = self.turn() else { return true };
        let now = || self.peers.now();
        if self.others_waiting() & 1 << turn.index == 0 || !turn.has_begun(now()) {
            return true;
        }
        if turn.answered && self.word.load(Ordering::SeqCst) == UNLOCKED {
            // It answered just as the word was freed. It has been told of that, and may be stopped.
            self.set_turn(before, Some(Turn::new(turn.index, now())));
            return false;
        }
        turn.is_over(now())
    }

    /// Returns the turn of a process that waits, now or soon; sets it if there is none. `None`: none waits.
    fn next_turn(&self, now: u64, frees: bool) -> Option<Turn> {
        let others = self.others_waiting();
        if others == 0 {
            return None;
        }
        let (before, turn) = self.turn();
        let next = match turn {
            Some(turn) if others & 1 << turn.index != 0 && !turn.is_over(now) => {
                // From now on, or from its begin on, there is a limit again.
                if frees && turn.answered { Turn::new(turn.index, turn.begin.max(now)) } else { turn }
            }
            _ => {
                let last = turn.map_or(self.me().index(), |turn| turn.index);
                Turn::new(next_in(others, last), now + TENURE)
            }
        };
        if turn != Some(next) {
            self.set_turn(before, Some(next));
        }
        Some(next)
    }

    /// Rings the process whose turn it is: the word may grant something. If no other has claims, notifies one waiter.
    pub fn pass(&self) {
        if !self.ring_next() {
            self.notify_elsewhere();
        }
    }

    /// Rings the process whose turn it is. Returns false if no other has claims.
    pub(super) fn ring_next(&self) -> bool {
        let turn = if self.others_waiting() == 0 { None } else { self.next_turn(self.peers.now(), true) };
        if let Some(turn) = turn {
            self.table.tell(self.index, turn.index, self.peers);
        }
        turn.is_some()
    }

    /// Notes that this process has found the word held at its turn.
    pub fn answer(&self) {
        let (before, turn) = self.turn();
        if let Some(turn) = turn.filter(|turn| turn.index == self.me().index() && !turn.answered) {
            self.set_turn(before, Some(Turn { answered: true, ..turn }));
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_one_number_and_other_numbers_are_none() {
        for turn in [Turn::new(0, 0), Turn::new(63, 1 << 50), Turn { answered: true, ..Turn::new(5, 7) }] {
            assert_eq!(Turn::from_packed(turn.packed()), Some(turn));
        }
        for packed in [0, ANSWERED, 65, 127, u64::MAX] {
            assert_eq!(Turn::from_packed(packed), None, "{packed}");
        }
    }

    #[test]
    fn the_next_process_is_the_first_behind_in_a_circle() {
        let mask = 1 | 1 << 5 | 1 << 63;
        for (index, next) in [(0, 5), (4, 5), (5, 63), (62, 63), (63, 0)] {
            assert_eq!(next_in(mask, index), next, "behind {index}");
        }
    }
}
