//! How much an agent settles before its event loop turns.
//!
//! A hand-over within a job costs no turn of the event loop, nor does a promise that settles at once, since a queue has
//! a message or room: so a chain of them would keep timers and other events waiting. Node serves up to 1 000 calls of
//! one threadsafe function in one turn. So the loop is known to have turned once *another* threadsafe function, rung
//! when the pace was used up, has been served, and the agent's own is rung only then.
//!
//! | turn | the time is over | a turn is awaited | the loop has turned |
//! |---|---|---|---|
//! | not asked for | asked for: one more may settle | awaited | not asked for |
//! | asked for | none may settle | awaited | not asked for |
//! | awaited | none may settle | awaited | not asked for; the agent is rung |

use std::cell::Cell;
use std::time::Duration;

use waitasync_core::clock::Timestamp;

/// How many hand-overs and such promises there are without a turn of the event loop.
const MOST: u32 = 64;
/// For how long there are any, from the first one on.
const LONGEST: Duration = Duration::from_millis(1);

/// Whether the other threadsafe function is rung and unserved.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Turn {
    #[default]
    NotAskedFor,
    AskedFor,
    /// The event loop is to turn before anything is delivered: the agent is rung then.
    Awaited,
}

/// What an agent has settled since its event loop turned; and whether it awaits a turn.
#[derive(Default)]
pub(crate) struct Pace {
    made: Cell<u32>,
    since: Cell<Timestamp>,
    turn: Cell<Turn>,
    /// Whether JavaScript is to hear of a turn: promises await it, or awaited it.
    pub(crate) owes_news: Cell<bool>,
    /// Whether the agent has been rung by itself, and the event loop has not served that.
    pub(crate) is_rung: Cell<bool>,
}

impl Pace {
    /// Whether there may be a hand-over, or a settlement, at `now`. `ring` rings the other threadsafe function: when
    /// the time is over, the loop may have turned unnoticed.
    pub(crate) fn allows(&self, now: Timestamp, ring: impl FnOnce()) -> bool {
        let made = self.made.get();
        if made == 0 {
            self.since.set(now);
        }
        let is_early = now.duration_since(self.since.get()) < LONGEST;
        let allows = made < MOST && (is_early || self.turn.get() == Turn::NotAskedFor);
        if allows && !is_early {
            self.ask_for_turn(Turn::AskedFor, ring);
        }
        allows
    }

    /// Notes a hand-over, or a promise that settles at once.
    pub(crate) fn go_on(&self) {
        self.made.set(self.made.get() + 1);
    }

    /// Lets the agent be rung once its event loop has turned.
    pub(crate) fn await_turn(&self, ring: impl FnOnce()) {
        self.ask_for_turn(Turn::Awaited, ring);
    }

    fn ask_for_turn(&self, turn: Turn, ring: impl FnOnce()) {
        if self.turn.replace(turn) == Turn::NotAskedFor {
            ring();
        }
    }

    pub(crate) fn awaits_turn(&self) -> bool {
        self.turn.get() == Turn::Awaited
    }

    /// Whether anything awaits a turn, and holds the event loop.
    pub(crate) fn holds_loop(&self) -> bool {
        self.awaits_turn() || self.owes_news.get()
    }

    /// Notes that the event loop has turned, or is about to. Returns whether the agent is to be rung.
    pub(crate) fn turned(&self) -> bool {
        self.made.set(0);
        self.turn.replace(Turn::NotAskedFor) == Turn::Awaited
    }
}

#[cfg(test)]
mod tests {
    use Turn::{AskedFor, Awaited, NotAskedFor};
    use waitasync_core::clock::now;

    use super::*;

    #[test]
    fn a_turn_goes_through_all_its_states() {
        // From each: once the time is over and one more is asked for; once a turn is awaited; and once it has come.
        // With what the first and the last return, and whether the first two ring.
        for (from, late, awaited, turned) in [
            (NotAskedFor, (AskedFor, true, true), (Awaited, true), false),
            (AskedFor, (AskedFor, false, false), (Awaited, false), false),
            (Awaited, (Awaited, false, false), (Awaited, false), true),
        ] {
            let (start, is_rung) = (now(), Cell::new(false));
            let ring = || is_rung.set(true);
            let pace =
                || Pace { turn: Cell::new(from), made: Cell::new(1), since: Cell::new(start), ..Pace::default() };

            let pace_of_late = pace();
            let allows = pace_of_late.allows(start.after(LONGEST), ring);
            assert_eq!((pace_of_late.turn.get(), allows, is_rung.take()), late);

            let pace_that_awaits = pace();
            pace_that_awaits.await_turn(ring);
            assert_eq!((pace_that_awaits.turn.get(), is_rung.take()), awaited);

            let pace = pace();
            assert_eq!((pace.turned(), pace.turn.get()), (turned, NotAskedFor));
        }
    }

    #[test]
    fn so_many_hand_overs_for_so_long_from_the_first_one_on_until_a_turn() {
        let (pace, start) = (Pace::default(), now());
        for since in [start, start.after(LONGEST)] {
            for _ in 0..MOST {
                assert!(pace.allows(since, || unreachable!()));
                pace.go_on();
            }
            assert!(!pace.allows(since, || unreachable!()), "they are used up");
            assert!(!pace.turned());
        }
    }
}
