//! How much an agent settles before its event loop turns.
//!
//! A hand-over within a job costs no turn of the event loop, nor does a promise that settles at once, since a queue has
//! a message or room: so a chain of them would keep timers and other events waiting. Node serves up to 1 000 calls of
//! one threadsafe function in one turn. So the loop is known to have turned once *another* threadsafe function, rung
//! when the pace was used up, has been served, and the agent's own is rung only then.

use std::cell::Cell;
use std::time::Duration;

use waitasync_core::clock::Timestamp;

/// How many hand-overs and such promises there are without a turn of the event loop.
const MOST: u32 = 64;
/// For how long there are any, from the first one on.
const LONGEST: Duration = Duration::from_millis(1);

/// What an agent has settled since its event loop turned; and whether it awaits a turn.
#[derive(Default)]
pub(crate) struct Pace {
    made: Cell<u32>,
    since: Cell<Timestamp>,
    /// Whether the other threadsafe function has been rung, and the event loop has not served that.
    asks: Cell<bool>,
    /// Whether the event loop is to turn before anything is delivered: the agent is rung then.
    pub(crate) awaits_turn: Cell<bool>,
    /// Whether JavaScript is to hear of that turn: promises await it.
    pub(crate) owes_news: Cell<bool>,
    /// Whether the agent has been rung by itself, and the event loop has not served that.
    pub(crate) is_rung: Cell<bool>,
}

impl Pace {
    /// Whether there may be a hand-over, or a settlement, at `now`.
    ///
    /// When the time is over, the loop may have turned unnoticed. So there may be one more, and `ring` rings the other
    /// threadsafe function; it returns whether it has.
    pub(crate) fn allows(&self, now: Timestamp, ring: impl FnOnce() -> bool) -> bool {
        let made = self.made.get();
        if made == 0 {
            self.since.set(now);
        }
        made < MOST && (now.duration_since(self.since.get()) < LONGEST || (!self.asks.get() && self.ask_for_turn(ring)))
    }

    /// Notes a hand-over, or a promise that settles at once.
    pub(crate) fn go_on(&self) {
        self.made.set(self.made.get() + 1);
    }

    /// Lets the agent be rung once its event loop has turned. Returns false if that fails.
    pub(crate) fn await_turn(&self, ring: impl FnOnce() -> bool) -> bool {
        let asks = self.ask_for_turn(ring);
        self.awaits_turn.set(asks);
        asks
    }

    fn ask_for_turn(&self, ring: impl FnOnce() -> bool) -> bool {
        let asks = self.asks.get() || ring();
        self.asks.set(asks);
        asks
    }

    /// Whether anything awaits a turn, and holds the event loop.
    pub(crate) fn holds_loop(&self) -> bool {
        self.awaits_turn.get() || self.owes_news.get()
    }

    /// Notes that the event loop has turned, or is about to. Returns whether the agent is to be rung.
    pub(crate) fn turned(&self) -> bool {
        self.made.set(0);
        self.asks.set(false);
        self.awaits_turn.replace(false)
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
            assert!(pace.allows(now, || unreachable!()));
            pace.go_on();
        }
        assert!(!pace.allows(now, || unreachable!()), "they are used up");
        assert!(pace.await_turn(|| true) && pace.turned(), "that is awaited");
        assert!(pace.allows(now, || unreachable!()));
    }

    #[test]
    fn hand_overs_for_so_long_and_one_more_then_a_turn() {
        let (pace, now) = (Pace::default(), now());
        assert!(pace.allows(now, || unreachable!()), "the first one begins");
        pace.go_on();
        let end = now.after(LONGEST);
        assert!(!pace.allows(end, || false), "it is long ago, and no turn can be asked for");
        assert!(pace.allows(end, || true), "the loop may have turned");
        pace.go_on();
        assert!(!pace.allows(end, || unreachable!()), "it has not");
        assert!(!pace.turned(), "nothing awaits the turn");
        assert!(pace.allows(end, || unreachable!()), "a new first one");
    }
}
