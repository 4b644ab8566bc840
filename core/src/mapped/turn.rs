//! Whose turn it is among the processes that wait for a word.
//!
//! A process that frees a word sets the turn of the next process that waits, in the order of their slots. For [`TENURE`]
//! the word is still free for all, so a word goes to another processor seldom. Then only that process may take it, until
//! [`LIMIT`] is over: it may be stopped. If it has answered that it found the word held, it is waited for without a
//! limit, until the word is freed again.

/// How long a process may keep a word for which others wait: microseconds.
pub(super) const TENURE: u64 = 200;
/// How long a free word waits for the process whose turn it is: microseconds.
const LIMIT: u64 = 20_000;

const INDEX: u64 = 0x7f;
const ANSWERED: u64 = 0x80;
const TIME: u32 = 8;

/// A turn: of the process in a slot, from a moment on (microseconds). As one number, 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Turn {
    pub(super) index: usize,
    pub(super) answered: bool,
    pub(super) begin: u64,
}

impl Turn {
    pub(super) const fn new(index: usize, begin: u64) -> Self {
        Self { index, answered: false, begin }
    }

    /// Reads the number in memory: it is input.
    pub(super) const fn from_packed(packed: u64) -> Option<Self> {
        match packed & INDEX {
            0 | 65.. => None,
            number => {
                Some(Self { index: number as usize - 1, answered: packed & ANSWERED != 0, begin: packed >> TIME })
            }
        }
    }

    pub(super) const fn packed(self) -> u64 {
        let answered = if self.answered { ANSWERED } else { 0 };
        self.begin << TIME | answered | (self.index as u64 + 1)
    }

    pub(super) const fn has_begun(self, now: u64) -> bool {
        now >= self.begin
    }

    pub(super) const fn is_over(self, now: u64) -> bool {
        !self.answered && now >= self.begin.saturating_add(LIMIT)
    }
}

/// Returns the first index of `mask` behind `index`, in a circle.
pub(super) const fn next_in(mask: u64, index: usize) -> usize {
    let behind = mask & (u64::MAX << 1).wrapping_shl(index as u32);
    (if index < 63 && behind != 0 { behind } else { mask }).trailing_zeros() as usize
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

    #[test]
    fn a_turn_lapses_unless_its_process_has_answered() {
        let turn = Turn::new(1, 100);
        assert!(!turn.has_begun(99) && turn.has_begun(100));
        assert!(!turn.is_over(99 + LIMIT) && turn.is_over(100 + LIMIT));
        assert!(!Turn { answered: true, ..turn }.is_over(u64::MAX));
    }
}
