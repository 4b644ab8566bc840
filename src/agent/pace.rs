//! How many hand-overs an agent makes before its event loop turns.
//!
//! A hand-over within a job costs no turn of the event loop, so a chain of them would keep timers and other events
//! waiting. Node serves up to 1 000 calls of one threadsafe function in one turn. So the loop is known to have turned
//! once *another* threadsafe function, rung when the hand-overs have been used up, has been served, and the agent's own
//! is rung only then.

use std::cell::{Cell, OnceCell};
use std::time::Duration;

use napi::sys;

use crate::environment::environment::{Bell, Environment};
use waitasync_core::clock::Timestamp;

/// How many hand-overs there are without a turn of the event loop.
const MOST: u32 = 64;
/// For how long there are any, from the first one on.
const LONGEST: Duration = Duration::from_millis(1);

/// The hand-overs of an agent since its event loop turned.
struct HandOvers {
    made: Cell<u32>,
    since: Cell<Timestamp>,
}

impl HandOvers {
    const fn none() -> Self {
        Self { made: Cell::new(0), since: Cell::new(Timestamp::NEVER) }
    }

    /// Whether there may be a hand-over at `now`.
    fn allow(&self, now: Timestamp) -> bool {
        if self.made.get() == 0 {
            self.since.set(now);
        }
        self.made.get() < MOST && now.duration_since(self.since.get()) < LONGEST
    }

    fn add(&self) {
        self.made.set(self.made.get() + 1);
    }

    fn forget(&self) {
        self.made.set(0);
    }
}

/// An agent's hand-overs, and its event loop's turn that it awaits.
pub(crate) struct Pace {
    environment: Environment,
    /// Called by the environment after a turn of its event loop: see [`Self::turned`].
    on_turn: sys::napi_threadsafe_function_call_js,
    hand_overs: HandOvers,
    /// Rung for a turn; made when it is needed. `None`: it could not be made.
    bell: OnceCell<Option<Bell>>,
    awaits_turn: Cell<bool>,
}

impl Pace {
    pub(crate) const fn new(environment: Environment, on_turn: sys::napi_threadsafe_function_call_js) -> Self {
        Self {
            environment,
            on_turn,
            hand_overs: HandOvers::none(),
            bell: OnceCell::new(),
            awaits_turn: Cell::new(false),
        }
    }

    /// Whether there may be a hand-over at `now`.
    pub(crate) fn allows(&self, now: Timestamp) -> bool {
        self.hand_overs.allow(now)
    }

    /// Whether the event loop is to turn before anything is delivered: the agent is rung then.
    pub(crate) fn awaits_turn(&self) -> bool {
        self.awaits_turn.get()
    }

    /// Lets the agent be rung once its event loop has turned. Returns false if that fails.
    pub(crate) fn await_turn(&self) -> bool {
        let Some(bell) = self.bell.get_or_init(|| self.environment.new_bell(self.on_turn).ok()) else { return false };
        self.awaits_turn.set(true);
        bell.ring();
        true
    }

    /// There is a hand-over.
    pub(crate) fn hand_over(&self) {
        self.hand_overs.add();
    }

    /// The event loop has turned, or is about to.
    pub(crate) fn turned(&self) {
        self.hand_overs.forget();
        self.awaits_turn.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitasync_core::clock::now;

    #[test]
    fn so_many_hand_overs_then_a_turn() {
        let (made, now) = (HandOvers::none(), now());
        for _ in 0..MOST {
            assert!(made.allow(now));
            made.add();
        }
        assert!(!made.allow(now), "they are used up");
        made.forget();
        assert!(made.allow(now));
    }

    #[test]
    fn hand_overs_for_so_long_then_a_turn() {
        let (made, now) = (HandOvers::none(), now());
        assert!(made.allow(now), "the first one begins");
        made.add();
        let end = now.after(LONGEST);
        assert!(!made.allow(end), "it is long ago");
        assert!(made.allow(now));
        made.forget();
        assert!(made.allow(end), "a new first one");
    }
}
