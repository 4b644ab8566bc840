//! The line before a word that excludes: what those in it ask for, and whose turn it is.
//!
//! # Words
//! | word of a | holds | taken in JavaScript, or here, by |
//! |---|---|---|
//! | lock | 0 free, 1 locked | 0 → 1 |
//! | read-write lock | 0 free, *n* readers, −1 a writer | *n* → *n* + 1, 0 → −1 |
//! | semaphore | the permits that are left | *n* → *n* − *k* |
//!
//! JavaScript takes what is free, and gives back what nobody waits for, with one atomic operation and without coming here.
//! Everybody else stands in the line of the word's location: in the same list as plain waiters, which may be threads that
//! lock by means of `Atomics.wait` and `notify`.
//!
//! # A lock's line
//! A newcomer may take a free lock although others wait: that is what makes locks fast. But nobody is passed over for long.
//!
//! | event | word | what happens |
//! |---|---|---|
//! | a claim comes | 0 | it takes the lock |
//! | | 1 | it joins the line |
//! | the holder releases | 1 → 0 | the first claim is *nudged*: woken to try; a newcomer may be quicker |
//! | | 1 → 1 | the first claim has tried in vain, or has been passed over for [`FAIRNESS`] or longer: it is handed the lock |
//! | a nudged claim tries | 0 → 1 | it has the lock and leaves the line |
//! | | 1 | it keeps its place and sleeps on, but for a moment in which it looks whether it is handed the lock |
//! | a claim gives up, or its agent ends | any | it leaves; if it was nudged, the next in line is |
//! | the holder's agent ends | 1 → 1 | the first claim is handed the lock, and told so |
//! | | 1 → 0 | nobody claims: the location is remembered as abandoned, for the next to be told |
//!
//! So there is time for a newcomer while the first in line wakes up, and nobody wakes up twice in vain.
//!
//! Plain waiters before the first claim are notified whenever it is nudged: each gets a try at its turn.
//!
//! # The other lines are strict
//! Nobody overtakes: a claim that finds a line joins it, and what is given back goes to the first claims, as many as it is
//! enough for. So a writer, or who asks for many permits, is not passed over for ever, and readers behind a writer enter
//! together. When a claim gives up, the first one is nudged, since what the other waited for may be enough for it.
//!
//! # Why no release is missed
//! If the word grants what the first claim asks for, then that claim is nudged, or a release is under way which will come
//! to it. For: whoever changes the word here sees to the first claim in the same critical section; whoever changes it in
//! JavaScript looks at the word's counter *afterwards* and comes here if anybody is counted (and if the thread is
//! ended between the two, its clean-up does); a claim is counted *before* it looks at the word (the argument of `store`'s
//! empty check); and a nudged claim either takes what it asks for, or finds it taken by somebody who will give it back, or
//! passes the nudge on when it leaves.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::location::Word;
use crate::waiter_list::WaiterKey;

/// How long the first in line may be passed over by newcomers, counted from the first release that did.
pub const FAIRNESS: Duration = Duration::from_micros(500);

/// The word of a lock that is free.
pub const UNLOCKED: i32 = 0;
/// The word of a lock that is held.
pub const LOCKED: i32 = 1;
/// The word of a read-write lock that is being written under.
pub const WRITING: i32 = -1;

/// What a claim asks of its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// To lock a lock.
    Lock,
    /// To read under a read-write lock.
    Shared,
    /// To write under a read-write lock.
    Exclusive,
    /// So many permits, to be given back when the holder dies.
    Permits(u32),
    /// So many permits, which belong to nobody once they are taken.
    Signals(u32),
}

impl Request {
    /// From its number in `lib/sync/holdings.js`, and the number of permits.
    pub const fn from_code(kind: u32, amount: u32) -> Self {
        match kind {
            0 => Self::Lock,
            1 => Self::Shared,
            2 => Self::Exclusive,
            3 => Self::Permits(amount),
            _ => Self::Signals(amount),
        }
    }

    /// Its number in `lib/sync/holdings.js`, and the number of permits.
    pub const fn to_code(self) -> (u32, u32) {
        match self {
            Self::Lock => (0, 0),
            Self::Shared => (1, 0),
            Self::Exclusive => (2, 0),
            Self::Permits(amount) => (3, amount),
            Self::Signals(amount) => (4, amount),
        }
    }

    /// Whether a claim with this request lets nobody overtake it.
    pub(crate) const fn is_strict(self) -> bool {
        !matches!(self, Self::Lock)
    }

    /// Whether what it took belongs to the thread that asked.
    pub const fn is_owned(self) -> bool {
        !matches!(self, Self::Signals(_))
    }

    /// Whether nobody else can have the word together with it, so that its holder's death leaves things half done.
    pub(crate) const fn is_exclusive(self) -> bool {
        matches!(self, Self::Lock | Self::Exclusive)
    }

    /// What the word that holds `current` is to hold once this has been taken from it; `None` if it cannot be now.
    fn taken_from(self, current: i32) -> Option<i32> {
        match self {
            Self::Lock => (current == UNLOCKED).then_some(LOCKED),
            Self::Exclusive => (current == UNLOCKED).then_some(WRITING),
            Self::Shared => current.checked_add(1).filter(|&readers| readers > 0),
            Self::Permits(amount) | Self::Signals(amount) => {
                i32::try_from(amount).ok().and_then(|amount| current.checked_sub(amount)).filter(|&left| left >= 0)
            }
        }
    }

    /// What the word that holds `current` is to hold once this has been given back.
    fn given_back_to(self, current: i32) -> i32 {
        match self {
            Self::Lock | Self::Exclusive => UNLOCKED,
            Self::Shared => current.saturating_sub(1).max(0),
            Self::Permits(amount) | Self::Signals(amount) => current.saturating_add_unsigned(amount),
        }
    }

    /// Whether the word grants what is asked for.
    pub(crate) fn is_granted_by(self, word: &impl Word) -> bool {
        self.taken_from(word.load()).is_some()
    }

    /// Takes what is asked for, if the word grants it now.
    pub fn take(self, word: &impl Word) -> bool {
        loop {
            let current = word.load();
            match self.taken_from(current) {
                None => return false,
                Some(next) if word.compare_exchange(current, next) => return true,
                Some(_) => {}
            }
        }
    }

    /// Gives back what was taken.
    pub(crate) fn give_back(self, word: &impl Word) {
        loop {
            let current = word.load();
            if word.compare_exchange(current, self.given_back_to(current)) {
                return;
            }
        }
    }
}

/// The state of a line that has claims.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// How many claims are in it. Never 0: the last one takes the line along.
    pub(crate) claims: u32,
    /// The claim that has been woken to try and has not done so yet.
    pub(crate) nudged: Option<WaiterKey>,
    /// The first claim, if it has been nudged and has tried in vain.
    tried: Option<WaiterKey>,
    /// The first claim, and the first release that passed it over.
    passed_over: Option<(WaiterKey, Timestamp)>,
}

impl Line {
    /// The claim `key` is about to try. Whether it is the one that was nudged.
    pub(crate) fn tries(&mut self, key: WaiterKey) -> bool {
        let was_nudged = self.nudged.take_if(|nudged| *nudged == key).is_some();
        if was_nudged {
            // If not in vain, it leaves.
            self.tried = Some(key);
        }
        was_nudged
    }

    /// A release finds `first` first in the line at `now`. Whether it has tried in vain, or been passed over long enough.
    pub(crate) fn is_turn_of(&mut self, first: WaiterKey, now: Timestamp) -> bool {
        match self.passed_over {
            _ if self.tried == Some(first) => true,
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
        self.tried.take_if(|tried| *tried == key);
        self.passed_over.take_if(|(first, _)| *first == key);
        self.nudged.take_if(|nudged| *nudged == key).is_some()
    }
}
