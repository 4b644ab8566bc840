//! How many hand-overs an agent makes before its event loop turns.
//!
//! A hand-over within a job costs no turn of the event loop, so a chain of them would keep timers and other events
//! waiting. Node serves up to 1 000 calls of one threadsafe function in one turn. So the loop is known to have turned
//! once *another* threadsafe function, rung when the hand-overs have been used up, has been served, and the agent's own
//! is rung only then.

use std::cell::{Cell, OnceCell};
use std::time::Duration;

use napi::Result;

use crate::environment::Bell;
use waitasync_core::clock::Timestamp;

/// How many hand-overs there are without a turn of the event loop.
const MOST: u32 = 64;
/// For how long there are any, from the first one on.
const LONGEST: Duration = Duration::from_millis(1);

/// An agent's hand-overs since its event loop turned; and whether it awaits a turn.
#[derive(Default)]
pub(crate) struct Pace {
    made: Cell<u32>,
    since: Cell<Timestamp>,
    /// Rung for a turn; made when it is needed. `None`: it could not be made.
    bell: OnceCell<Option<Bell>>,
    /// Whether the event loop is to turn before anything is delivered: the agent is rung then.
    pub(crate) awaits_turn: Cell<bool>,
}

impl Pace {
    /// Whether there may be a hand-over at `now`.
    pub(crate) fn allows(&self, now: Timestamp) -> bool {
        if self.made.get() == 0 {
            self.since.set(now);
        }
        self.made.get() < MOST && now.duration_since(self.since.get()) < LONGEST
    }

    pub(crate) fn hand_over(&self) {
        self.made.set(self.made.get() + 1);
    }

    /// Lets the agent be rung once its event loop has turned. Returns false if that fails.
    pub(crate) fn await_turn(&self, new_bell: impl FnOnce() -> Result<Bell>) -> bool {
        let Some(bell) = self.bell.get_or_init(|| new_bell().ok()) else { return false };
        self.awaits_turn.set(true);
        bell.ring();
        true
    }

    /// Notes that the event loop has turned, or is about to.
    pub(crate) fn turned(&self) {
        self.made.set(0);
        self.awaits_turn.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitasync_core::clock::now;

    #[test]
    fn so_many_hand_overs_then_a_turn() {
        let (pace, now) = (Pace::default(), now());
        for _ in 0..MOST {
            assert!(pace.allows(now));
            pace.hand_over();
        }
        assert!(!pace.allows(now), "they are used up");
        pace.turned();
        assert!(pace.allows(now));
    }

    #[test]
    fn hand_overs_for_so_long_then_a_turn() {
        let (pace, now) = (Pace::default(), now());
        assert!(pace.allows(now), "the first one begins");
        pace.hand_over();
        let end = now.after(LONGEST);
        assert!(!pace.allows(end), "it is long ago");
        assert!(pace.allows(now));
        pace.turned();
        assert!(pace.allows(end), "a new first one");
    }
}
