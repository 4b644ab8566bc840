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
//! | | 1 → 1 | it is the turn of a claim: that one is handed the lock |
//! | a nudged claim tries | 0 → 1 | it has the lock and leaves the line |
//! | | 1 | it keeps its place and sleeps on, but for a moment in which it looks whether it is handed the lock |
//! | a claim gives up, or its agent ends | any | it leaves; if it was nudged, the next in line is |
//! | the holder's agent ends | 1 → 1 | the first claim is handed the lock, and told so; a promise's only if it has tried in vain |
//! | | 1 → 0 | otherwise: the location is remembered as abandoned, for the next to be told; and as for a release |
//!
//! So there is time for a newcomer while the first in line wakes up, and nobody wakes up twice in vain.
//!
//! Plain waiters before the first claim are notified whenever it is nudged: each gets a try at its turn.
//!
//! # A busy event loop holds nobody up
//! A blocked thread does nothing but wait, so it tries soon after it has been nudged. A promise's claim tries when its thread's
//! event loop turns, and that may be computing for seconds. Therefore:
//!
//! - When the claim that is nudged is a promise's, the first blocked thread behind it is nudged as well, and plain waiters that
//!   block before that one are notified (not by a notification, which wakes as many as it counts). So at most two claims are
//!   nudged at a time: one of a promise, which is the first in line, and one of a blocked thread. That one gives the promise a head
//!   start: if it wakes up within [`FAIRNESS`] of the first release that passed the promise's claim over, and that has not tried
//!   yet, it tries only then.
//! - It is the turn of the first claim if that has been nudged and has tried in vain: its thread ran a moment ago. For a blocked
//!   thread it is enough to have been passed over for [`FAIRNESS`]. If the first claim is a promise's that has not tried, then the
//!   same is asked of the first blocked thread behind it.
//!
//! A loop that is not busy may want a processor, when the threads that take the lock in turns occupy all of them. So a thread
//! that releases when a promise's claim has been passed over for [`FAIRNESS`] without having tried makes room: it sleeps for
//! [`ROOM`], as do those who release meanwhile. That happens again only after twice as long, for the loop may be busy after all.
//!
//! Two things remain. A loop may become busy after its promise's claim has tried: then the lock that it is handed stays with it
//! until the loop turns. And of several promises only the first is nudged: event loops behind a busy one wait for it, or for a
//! blocked thread's release.
//!
//! # The other lines are strict
//! Nobody overtakes: a claim that finds a line joins it, and what is given back goes to the first claims, as many as it is
//! enough for. So a writer, or who asks for many permits, is not passed over for ever, and readers behind a writer enter
//! together. What is given to a promise whose thread is busy stays with it: it was its turn. When a claim gives up, the first
//! one is nudged, since what the other waited for may be enough for it. A blocked thread that is nudged behind a promise's claim
//! does not try for itself: it gives the first claims what the word is enough for, as a release does.
//!
//! # Why no release is missed
//! If the word grants what the first claim asks for, then that claim is nudged, and if it is a promise's the first blocked
//! thread behind it, too; or a release is under way which will come to it. For: whoever changes the word here sees to the first
//! claim, and to the thread, in the same critical section; whoever changes it in JavaScript looks at the word's counter
//! *afterwards* and comes here if anybody is counted (and if the thread is ended between the two, its clean-up does); a claim is
//! counted *before* it looks at the word (the argument of `store`'s empty check); and a nudged claim either takes what it asks
//! for, or finds it taken by somebody who will give it back, or passes the nudge on when it leaves.
//!
//! A blocked thread that joins a lock's line has found the lock taken, so a release is to come. One that joins a strict line
//! behind a nudged promise gives that one what the word grants before it waits itself.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::queue::location::Word;
use crate::queue::waiter_list::WaiterKey;

/// How long the first in line may be passed over by newcomers, counted from the first release that did.
pub const FAIRNESS: Duration = Duration::from_micros(500);

/// For how long a thread that gives back a lock makes room for one that may want its processor. Systems make it twice as long.
pub const ROOM: Duration = Duration::from_micros(50);

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

/// Up to one claim of a promise and one of a blocked thread.
#[derive(Debug, Default)]
struct OneOfEach {
    promise: Option<WaiterKey>,
    thread: Option<WaiterKey>,
}

impl OneOfEach {
    fn place_for(&mut self, blocks: bool) -> &mut Option<WaiterKey> {
        if blocks { &mut self.thread } else { &mut self.promise }
    }

    fn has(&self, key: WaiterKey) -> bool {
        self.promise == Some(key) || self.thread == Some(key)
    }

    /// Whether it was one of them.
    fn remove(&mut self, key: WaiterKey) -> bool {
        self.promise.take_if(|promise| *promise == key).is_some()
            || self.thread.take_if(|thread| *thread == key).is_some()
    }
}

/// A promise's claim to which a lock has not been handed, since its thread may be busy.
#[derive(Debug)]
struct KeptWaiting {
    key: WaiterKey,
    since: Timestamp,
    /// How long until the next release makes room for its thread.
    patience: Duration,
    /// And those after that one, until then.
    room_until: Timestamp,
}

/// The state of a line that has claims. `blocks`: whether a claim is a blocked thread's and not a promise's.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// How many claims are in it. Never 0: the last one takes the line along.
    claims: u32,
    /// How many of them are promises'.
    promises: u32,
    /// The blocked threads, claims and plain waiters, that came while a promise's claim was in the line; in their order. If the
    /// first claim is a promise's, then these are all the threads behind it.
    threads: VecDeque<WaiterKey>,
    /// Who has been woken to try and has not done so yet.
    nudged: OneOfEach,
    /// Who has been nudged and has tried in vain.
    tried: OneOfEach,
    /// The claim of a blocked thread that was to be the next, and the first release that passed it over.
    passed_over: Option<(WaiterKey, Timestamp)>,
    /// The last of the claims at the front of the list, as far as is known: no plain waiter stands before it. So whoever looks
    /// for plain waiters goes over each claim once in its life.
    pub(crate) leading: Option<WaiterKey>,
    /// The claim of a promise that is the first, and has not tried.
    kept_waiting: Option<KeptWaiting>,
}

impl Line {
    /// A claim comes, behind the waiter `previous`.
    pub(crate) fn join(&mut self, key: WaiterKey, previous: Option<WaiterKey>, blocks: bool) {
        self.claims += 1;
        if previous.is_none() || previous == self.leading {
            self.leading = Some(key);
        }
        if blocks {
            self.join_plainly(key);
        } else {
            self.promises += 1;
        }
    }

    /// A blocked thread comes that is to be notified.
    pub(crate) fn join_plainly(&mut self, key: WaiterKey) {
        if self.promises > 0 {
            self.threads.push_back(key);
        }
    }

    /// The first blocked thread behind the first claim, which is a promise's.
    pub(crate) fn first_thread(&self) -> Option<WaiterKey> {
        self.threads.front().copied()
    }

    /// Those blocked threads, in their order.
    pub(crate) fn threads(&self) -> impl Iterator<Item = WaiterKey> {
        self.threads.iter().copied()
    }

    /// The claim `key` is being nudged. False if it has been, and has not tried yet.
    pub(crate) fn nudge(&mut self, key: WaiterKey, blocks: bool) -> bool {
        self.nudged.place_for(blocks).replace(key) != Some(key)
    }

    /// Whether the first claim is a promise's that has been nudged and has not tried yet.
    pub(crate) fn waits_for_promise(&self) -> bool {
        self.nudged.promise.is_some()
    }

    /// The claim `key` is about to try. Whether it was nudged.
    pub(crate) fn tries(&mut self, key: WaiterKey, blocks: bool) -> bool {
        let was_nudged = self.nudged.remove(key);
        if was_nudged {
            // If not in vain, it leaves.
            *self.tried.place_for(blocks) = Some(key);
        }
        was_nudged
    }

    /// Whether the claim has been nudged and has tried in vain.
    pub(crate) fn has_tried(&self, key: WaiterKey) -> bool {
        self.tried.has(key)
    }

    /// A release at `now` finds that the claim `key`, a blocked thread's, is to be the next. Whether it has been passed over for
    /// long enough.
    pub(crate) fn passes_over(&mut self, key: WaiterKey, now: Timestamp) -> bool {
        match self.passed_over {
            Some((passed_over, since)) if passed_over == key => now.duration_since(since) >= FAIRNESS,
            _ => {
                self.passed_over = Some((key, now));
                false
            }
        }
    }

    /// The same for a promise's claim `key`, the first, that has not tried. Whether the thread that releases is to make room for
    /// its thread: after [`FAIRNESS`], and again whenever twice as long has passed, for each release within [`ROOM`].
    pub(crate) fn keeps_waiting(&mut self, key: WaiterKey, now: Timestamp) -> bool {
        self.begin_to_keep_waiting(key, || now);
        self.kept_waiting.as_mut().is_some_and(|KeptWaiting { since, patience, room_until, .. }| {
            if now.duration_since(*since) >= *patience {
                *patience *= 2;
                *room_until = now.after(ROOM);
            }
            now < *room_until
        })
    }

    /// The promise's claim `key`, the first, has not tried: it has been kept waiting since `now` at the latest.
    pub(crate) fn begin_to_keep_waiting(&mut self, key: WaiterKey, now: impl FnOnce() -> Timestamp) {
        if self.kept_waiting.as_ref().is_none_or(|kept_waiting| kept_waiting.key != key) {
            let since = now();
            self.kept_waiting = Some(KeptWaiting { key, since, patience: FAIRNESS, room_until: since });
        }
    }

    /// Until when the claim of a blocked thread that was nudged is to let that of a promise go first, if it is.
    pub(crate) fn head_start(&self, key: WaiterKey) -> Option<Timestamp> {
        let first = self.kept_waiting.as_ref()?;
        let waits = self.nudged.thread == Some(key) && self.nudged.promise == Some(first.key);
        waits.then(|| first.since.after(FAIRNESS))
    }

    /// A claim leaves that stood behind the waiter `previous`. Whether it was nudged: then the word may be free, and the next in
    /// line is to be looked after. That it has tried since does not count, in case a panic broke that off.
    pub(crate) fn leave(&mut self, key: WaiterKey, previous: Option<WaiterKey>, blocks: bool) -> bool {
        self.claims -= 1;
        if blocks {
            self.leave_plainly(key);
        } else {
            self.promises -= 1;
        }
        if self.leading == Some(key) {
            self.leading = previous;
        }
        let has_tried = self.tried.remove(key);
        self.passed_over.take_if(|(passed_over, _)| *passed_over == key);
        self.kept_waiting.take_if(|kept_waiting| kept_waiting.key == key);
        self.nudged.remove(key) || has_tried
    }

    /// A blocked thread leaves that was to be notified.
    pub(crate) fn leave_plainly(&mut self, key: WaiterKey) {
        // Mostly the first; and there are no more of them than threads.
        if let Some(place) = self.threads.iter().position(|thread| *thread == key) {
            self.threads.remove(place);
        }
    }

    /// How many claims are in it.
    pub(crate) fn claims(&self) -> u32 {
        self.claims
    }

    /// Whether the last claim has left.
    pub(crate) fn is_empty(&self) -> bool {
        self.claims == 0
    }
}
