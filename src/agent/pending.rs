//! An agent's pending promises, and the pace at which they settle.
//!
//! # How much is settled before the event loop turns
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

use std::cell::{Cell, RefCell};
use std::time::Duration;

use waitasync_core::clock::Timestamp;
use waitasync_core::held::{Noted, SharedNotes, Within};
use waitasync_core::queue::Ticket;

/// A pending wait. There may be a million of them.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) ticket: Ticket,
    timed: bool,
    refed: bool,
}

const _: () = assert!(size_of::<Option<Wait>>() == 8);

/// A table up to this length keeps its memory.
const RETAINED: usize = 4096;

/// An agent's pending asynchronous waits, by slot; their hold on the loop.
///
/// The table is used on the agent's thread only, and may be out of date: the store recognises the ticket of a wait that
/// is settled.
#[derive(Default)]
pub(crate) struct Pending {
    waits: RefCell<Vec<Option<Wait>>>,
    pub(crate) notes: SharedNotes,
    /// How many notes there are: each claim has one. Most agents have none: then a wait's end costs nothing more.
    pub(crate) noted: Cell<usize>,
    /// When the next wait began, of which it is a further step.
    pub(crate) next_began: Cell<Option<Timestamp>>,
    /// See [`Self::set_within`].
    within: Cell<Option<Within>>,
    /// How many of them, with and without a timeout, want the event loop to be kept alive.
    timed: Cell<usize>,
    untimed: Cell<usize>,
}

impl Pending {
    fn count(&self, wait: Wait, change: isize) {
        let count = if wait.timed { &self.timed } else { &self.untimed };
        count.set(count.get().wrapping_add_signed(change));
    }

    /// Notes the wait in a slot. Called before it is enqueued, so that other threads know it at every moment: but for a
    /// name, whose word is known only then.
    pub(crate) fn note(&self, slot: u32, noted: Noted) {
        self.noted.set(self.notes.add(slot, noted, self.within.take()));
    }

    pub(crate) fn set_within(&self, holds: Vec<u32>) {
        self.within.set(Some(holds.into()).filter(|holds: &Within| !holds.is_empty()));
    }

    /// Adds the wait in this slot, which has been enqueued.
    pub(crate) fn insert(&self, slot: u32, ticket: Ticket, timed: bool) {
        let wait = Wait { ticket, timed, refed: true };
        let index = slot as usize;
        let waits = &mut *self.waits.borrow_mut();
        if waits.len() <= index {
            waits.resize(index + 1, None);
        }
        waits[index] = Some(wait);
        self.count(wait, 1);
    }

    /// Removes the wait in this slot, which is over.
    pub(crate) fn remove(&self, slot: u32) -> Option<Noted> {
        let wait = self.waits.borrow_mut().get_mut(slot as usize).and_then(Option::take);
        if let Some(wait) = wait.filter(|wait| wait.refed) {
            self.count(wait, -1);
        }
        if self.noted.get() == 0 {
            return None;
        }
        let (noted, left) = self.notes.remove(slot);
        self.noted.set(left);
        noted
    }

    pub(crate) fn ticket(&self, slot: u32) -> Option<Ticket> {
        Some(self.waits.borrow().get(slot as usize)?.as_ref()?.ticket)
    }

    /// Sets whether the wait in this slot keeps the event loop alive.
    pub(crate) fn set_refed(&self, slot: u32, refed: bool) {
        if let Some(Some(wait)) = self.waits.borrow_mut().get_mut(slot as usize)
            && wait.refed != refed
        {
            wait.refed = refed;
            self.count(*wait, if refed { 1 } else { -1 });
        }
    }

    /// Whether a pending wait keeps the event loop alive. Without a timeout, only another thread can settle it.
    pub(crate) fn holds_loop(&self, other_threads: impl FnOnce() -> bool) -> bool {
        self.timed.get() > 0 || (self.untimed.get() > 0 && other_threads())
    }

    /// Frees the spare memory of a long table. Called when waits have been removed.
    pub(crate) fn shrink(&self) {
        // Then only unref'd waits are pending.
        if self.timed.get() + self.untimed.get() == 0 {
            let mut waits = self.waits.borrow_mut();
            if waits.capacity() > RETAINED {
                // A pending wait keeps its index.
                let len = waits.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
                waits.truncate(len);
                waits.shrink_to_fit();
            }
        }
    }

    pub(crate) fn tickets(&self) -> Vec<(u32, Ticket)> {
        let waits = self.waits.borrow();
        (0..).zip(&*waits).filter_map(|(slot, wait)| Some((slot, (*wait)?.ticket))).collect()
    }
}

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
        for (from, late, awaited, is_awaited) in [
            (NotAskedFor, (AskedFor, true, true), (Awaited, true), false),
            (AskedFor, (AskedFor, false, false), (Awaited, false), false),
            (Awaited, (Awaited, false, false), (Awaited, false), true),
        ] {
            let (start, is_rung) = (now(), Cell::new(false));
            let ring = || is_rung.set(true);
            let (turn, made, since) = (Cell::new(from), Cell::new(1), Cell::new(start));
            let pace = Pace { made, since, turn, ..Pace::default() };
            let allows = pace.allows(start.after(LONGEST), ring);
            assert_eq!((pace.turn.replace(from), allows, is_rung.take()), late);
            pace.await_turn(ring);
            assert_eq!((pace.turn.replace(from), is_rung.take()), awaited);
            assert_eq!((pace.turned(), pace.turn.get()), (is_awaited, NotAskedFor));
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
