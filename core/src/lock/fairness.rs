//! When a lock is handed over, and to which claim.
//!
//! A blocked thread only waits, so it retries soon after it has been woken. A promise's claim retries when its thread's
//! event loop turns, and the loop may be computing for seconds. It must not delay a thread that can run:
//!
//! - When a promise's claim is woken, the first blocked thread behind it is woken as well, and waiters without a claim
//!   that block before that one are notified (not by a notification, which wakes as many as it counts). So at most two
//!   claims are awake: one of a promise, which is the first in line, and one of a blocked thread.
//! - That thread gives the promise a head start: it retries once [`FAIRNESS`] has passed since the first release that
//!   left the promise's claim waiting, unless the claim has retried before.
//! - It is the turn of the first claim if it has been woken and has retried in vain: its thread ran a moment ago. A
//!   blocked thread need only have been overtaken for [`FAIRNESS`]. If the first claim is a promise's that has not
//!   retried, the same rule holds for the first blocked thread behind it.
//! - An agent that releases at the end of a job runs. So it is the turn of its own promise, if that is the first.
//! - An agent that releases in the midst of a job frees the lock, for the job may take it again by a form that blocks or
//!   only tries. Its own promise, if that is the first, tries once the job's code has run, or its loop has turned.
//! - A promise overtakes no promise of its own agent that is the first in line. Else two tasks of a thread that take the
//!   lock in turns would keep it from a third, which needs a turn of the event loop, and that from every timer.
//! - An event loop that is not busy may lack a processor, when threads that take the lock in turns occupy all of them.
//!   So a thread that releases the lock sleeps for [`ROOM`] when a promise's claim has waited for [`FAIRNESS`] without
//!   retrying, as do the threads that release it meanwhile. That happens again only after twice as long, for the loop
//!   may be busy after all.
//!
//! # Limits
//! A loop may become busy after its promise's claim has retried: a lock that is handed to it then stays with it until
//! the loop turns. Of several promises only the first is woken: loops behind a busy one wait for it, or for a thread's
//! release.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::queue::WaiterKey;

/// How long newcomers may overtake the first in line, counted from the first release that let them.
pub const FAIRNESS: Duration = Duration::from_micros(500);

/// How long a thread that releases a lock sleeps for the sake of an event loop. Systems make it twice as long.
pub const ROOM: Duration = Duration::from_micros(50);

/// The next step of a thread that has released a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Released {
    GoOn,
    /// Sleep for [`ROOM`]: an event loop that waits for the lock may lack a processor.
    MakeRoom,
}

/// The claims that newcomers overtake.
#[derive(Debug, Default)]
pub(super) struct Overtaken {
    /// A blocked thread's claim, and the first release that left it waiting.
    thread: Option<(WaiterKey, Timestamp)>,
    /// A promise's claim, the first, that has not retried.
    promise: Option<Unready>,
}

/// A promise's claim whose thread is too busy for a hand-over.
#[derive(Debug)]
pub(super) struct Unready {
    key: WaiterKey,
    since: Timestamp,
    /// After this long the next release makes room for its thread.
    patience: Duration,
    room_until: Timestamp,
}

impl Overtaken {
    pub(super) fn remove(&mut self, key: WaiterKey) {
        self.thread.take_if(|(thread, _)| *thread == key);
        self.promise.take_if(|promise| promise.key == key);
    }

    /// Notes that a release at `now` found a thread's claim. Returns whether it has been overtaken for long enough.
    pub(super) fn thread_is_late(&mut self, key: WaiterKey, now: Timestamp) -> bool {
        match self.thread {
            Some((thread, since)) if thread == key => now.duration_since(since) >= FAIRNESS,
            _ => {
                self.thread = Some((key, now));
                false
            }
        }
    }

    /// Notes a release that found the first claim, a promise's, unready.
    pub(super) fn promise_is_unready(&mut self, key: WaiterKey, now: Timestamp) -> Released {
        let promise = self.note_unready(key, now);
        if now.duration_since(promise.since) >= promise.patience {
            promise.patience *= 2;
            promise.room_until = now.after(ROOM);
        }
        if now < promise.room_until { Released::MakeRoom } else { Released::GoOn }
    }

    /// Tells until when a thread's claim lets the first, a promise's, go.
    pub(super) fn head_start_of(&self, is_first: impl FnOnce(WaiterKey) -> bool) -> Option<Timestamp> {
        let promise = self.promise.as_ref().filter(|promise| is_first(promise.key))?;
        Some(promise.since.after(FAIRNESS))
    }

    /// Notes since when the first claim, a promise's, has not retried.
    pub(super) fn note_unready(&mut self, key: WaiterKey, now: Timestamp) -> &mut Unready {
        self.promise.take_if(|promise| promise.key != key);
        self.promise.get_or_insert(Unready { key, since: now, patience: FAIRNESS, room_until: now })
    }
}
