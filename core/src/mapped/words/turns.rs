//! Whose turn it is among the processes that wait for a word; and waiters without a claim, whom one notifies in another.
//!
//! A process that frees a word sets the turn of the next process that waits, in the order of their slots. For [`TENURE`]
//! the word is still free for all, so a word goes to another processor seldom. Then only that process may take it, until
//! [`LIMIT`] is over: it may be stopped. If it has answered that it found the word held, it is waited for without a
//! limit, until the word is freed again.

use super::{SLOTS, SharedWord};
use crate::lock::UNLOCKED;
use crate::queue::other_processes::SharedWaits;
use crate::sync::{AtomicU64, Ordering, fence};

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

/// Takes the number of waiters and of notifications apart.
const fn unpacked(waits: u64) -> (u32, u32) {
    (waits as u32, (waits >> 32) as u32)
}

const fn packed(waiters: u32, notified: u32) -> u64 {
    (notified as u64) << 32 | waiters as u64
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
        // The word has been freed, and no claim is in a line.
        if !self.ring_next() && self.record().notifies.load(Ordering::SeqCst) != 0 {
            self.notify(1, &mut |_| 0);
        }
    }

    /// Rings the process whose turn it is. Returns false if no other has claims.
    fn ring_next(&self) -> bool {
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

    fn waits(&self) -> &AtomicU64 {
        &self.record().waits[self.me().index()]
    }

    /// Notifies up to `count` waiters of a process. Returns how many.
    fn notify_in(&self, process: usize, count: usize) -> usize {
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

    /// Passes on what a dead process had not delivered. A sweeper's death may repeat one, but loses none.
    pub(super) fn pass_on_notifications(&self, dead: usize) {
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

/// Replaces a number by `next` of it, unless that is `None`. Returns the number before.
fn update(number: &AtomicU64, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    number.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok()
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
