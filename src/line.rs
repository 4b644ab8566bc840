//! The line before a word that excludes: what those in it ask for, and whose turn it is.
//!
//! # A lock's word and its line
//! The word holds 0 (free) or 1 (locked) and nothing else. JavaScript takes a free lock, and frees one that nobody waits
//! for, with one atomic operation and without coming here. Everybody else stands in the line of the word's location: in
//! the same list as plain waiters, which may be threads that lock by means of `Atomics.wait` and `notify`.
//!
//! | event | word | what happens |
//! |---|---|---|
//! | a claim comes | 0 | it takes the lock |
//! | | 1 | it joins the line |
//! | the holder releases | 1 → 0 | the first claim is *nudged*: woken to try; a newcomer may be quicker |
//! | | 1 → 1 | the first claim has been passed over for [`FAIRNESS`] or longer: it is handed the lock |
//! | a nudged claim tries | 0 → 1 | it has the lock and leaves the line |
//! | | 1 | it keeps its place and sleeps on |
//! | a claim gives up, or its agent ends | any | it leaves; if it was nudged, the next in line is |
//! | the holder's agent ends | 1 → 1 | the first claim is handed the lock, and told so |
//! | | 1 → 0 | nobody claims: the location is remembered as abandoned, for the next to be told |
//!
//! Plain waiters before the first claim are notified whenever it is nudged: each gets a try at its turn.
//!
//! # Why no release is missed
//! If the word is free and the line is not empty, then the first claim is nudged, or a release is under way which will
//! nudge it. For: whoever frees the word here nudges in the same critical section; whoever frees it in JavaScript looks
//! at the bucket's occupancy *afterwards* and comes here if anybody is counted; a claim is counted *before* it looks at
//! the word (the argument of `store`'s empty check); and a nudged claim either takes the lock, or finds it taken by
//! somebody who will release it, or passes the nudge on when it leaves.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::location::Word;
use crate::store::Party;
use crate::waiter_list::WaiterKey;

/// How long the first in line may be passed over by newcomers, counted from the first release that did.
pub const FAIRNESS: Duration = Duration::from_millis(1);

/// The word of a lock that is free.
pub const UNLOCKED: i32 = 0;
/// The word of a lock that is held.
pub const LOCKED: i32 = 1;

/// What a claim asks of its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// To lock it: 0 → 1.
    Lock,
}

impl Request {
    /// Takes what is asked for, if the word grants it now.
    pub fn take(self, word: &impl Word) -> bool {
        match self {
            Self::Lock => word.compare_exchange(UNLOCKED, LOCKED),
        }
    }
}

/// One in the line: what it asks for, and who it is.
#[derive(Debug)]
pub struct Claim {
    /// What it asks for.
    pub request: Request,
    /// Who is to be told.
    pub party: Party,
}

/// The state of a line that has claims.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// How many claims are in it. Never 0: the last one takes the line along.
    pub(crate) claims: u32,
    /// The claim that has been woken to try and has not done so yet.
    pub(crate) nudged: Option<WaiterKey>,
    /// The first claim, and the first release that passed it over.
    passed_over: Option<(WaiterKey, Timestamp)>,
}

impl Line {
    /// A release finds `first` first in the line at `now`. Whether it has been passed over long enough.
    pub(crate) fn is_turn_of(&mut self, first: WaiterKey, now: Timestamp) -> bool {
        match self.passed_over {
            Some((key, since)) if key == first => now.duration_since(since) >= FAIRNESS,
            _ => {
                self.passed_over = Some((first, now));
                false
            }
        }
    }

    /// A claim leaves. Whether it was nudged.
    pub(crate) fn leave(&mut self, key: WaiterKey) -> bool {
        self.claims -= 1;
        self.passed_over.take_if(|(first, _)| *first == key);
        self.nudged.take_if(|nudged| *nudged == key).is_some()
    }
}
