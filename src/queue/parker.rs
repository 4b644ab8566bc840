//! A thread that blocks for a word of shared memory: how its outcome reaches it, and how it sleeps until then.
//!
//! The outcome is recorded under the bucket's lock by whoever takes the waiter out of its list, and only afterwards,
//! with no lock held, the thread is unparked (invariants 2 and 5). A late unpark of an earlier wait is therefore
//! harmless: the thread looks at its outcome, finds none, and sleeps on.

use std::sync::atomic::AtomicU32;

use crate::clock::{Timestamp, now};
use crate::queue::store::WaitResult;
use crate::sync::{AtomicBool, AtomicU8, Ordering, Thread, current, park, park_timeout};
use crate::thread::processor;

/// No outcome yet.
const WAITING: u8 = u8::MAX;

// How long the thread has been blocked, in ticks of the service.
/// It is not blocked.
const AWAKE: u8 = 0;
/// No tick has come since it has been.
const BLOCKED: u8 = 1;
/// One tick has come.
const TICKED: u8 = 2;
/// The second one: the thread is to come back.
const OVER: u8 = 3;
/// It has come back. Its further slices it ends itself.
const LONGER: u8 = 4;

/// The part of a blocked thread that other threads see. Made once per thread, used for one wait after the other.
#[derive(Debug)]
pub struct BlockedThread {
    outcome: AtomicU8,
    nudged: AtomicBool,
    called_back: AtomicBool,
    blocked: AtomicU8,
    /// The processor on which the outcome was recorded; [`NOWHERE`] if that is not known.
    settled_on: AtomicU32,
    thread: Thread,
}

const NOWHERE: u32 = u32::MAX;

/// Why a blocked thread woke up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// Its wait is over.
    Settled(WaitResult),
    /// Its claim is the first in line, and is to try now.
    Nudged,
    /// The time that it was to sleep at most has passed.
    TimeOver,
    /// It is to look whether it shall end.
    CalledBack,
}

impl BlockedThread {
    /// For the calling thread.
    pub fn current() -> Self {
        Self {
            outcome: AtomicU8::new(WAITING),
            nudged: AtomicBool::new(false),
            called_back: AtomicBool::new(false),
            blocked: AtomicU8::new(AWAKE),
            settled_on: AtomicU32::new(NOWHERE),
            thread: current(),
        }
    }

    /// Forgets the last wait's outcome. Called by the thread itself, in the critical section in which it is appended.
    pub(crate) fn reset(&self) {
        self.outcome.store(WAITING, Ordering::Relaxed);
        self.nudged.store(false, Ordering::Relaxed);
    }

    /// Records the outcome. Called in the critical section in which the waiter was removed.
    pub(crate) fn settle(&self, result: WaitResult) {
        self.settled_on.store(processor::current().unwrap_or(NOWHERE), Ordering::Relaxed);
        // Release: what the notifying thread wrote before is visible to the thread that reads the outcome.
        self.outcome.store(result as u8, Ordering::Release);
    }

    /// Whether the outcome came from the processor that the calling thread, the one that waited, runs on.
    #[cfg(not(feature = "model"))]
    pub(crate) fn was_settled_here(&self) -> bool {
        processor::current().is_some_and(|here| self.settled_on.load(Ordering::Relaxed) == here)
    }

    /// Records that its claim is to try. Called in the critical section in which it was found first in line.
    pub(crate) fn nudge(&self) {
        self.nudged.store(true, Ordering::Release);
    }

    /// Makes the thread come back from `park_until`, although its wait is not over. Called by the service.
    pub fn call_back(&self) {
        self.called_back.store(true, Ordering::Release);
        self.unpark();
    }

    /// Notes that the thread is blocked from here on, in its first slice. Called by the thread itself.
    pub fn begin_block(&self) {
        self.blocked.store(BLOCKED, Ordering::Relaxed);
    }

    /// The thread ends its slices itself from here on. Called by the thread itself.
    pub(crate) fn end_first_slice(&self) {
        self.blocked.store(LONGER, Ordering::Relaxed);
    }

    /// Notes that the thread is not blocked any more. Called by the thread itself.
    pub fn end_block(&self) {
        self.blocked.store(AWAKE, Ordering::Relaxed);
    }

    /// Whether the thread has noted that it is blocked.
    pub fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed) != AWAKE
    }

    /// Ends the first slice of a thread that has been in it since the last tick. Whether it was in its first slice. Called by the
    /// service.
    pub fn tick(&self) -> bool {
        let step = |from, to| self.blocked.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if step(TICKED, OVER) {
            self.unpark();
            return true;
        }
        step(BLOCKED, TICKED)
    }

    /// The outcome, if the wait is over.
    pub fn outcome(&self) -> Option<WaitResult> {
        match self.outcome.load(Ordering::Acquire) {
            WAITING => None,
            code => Some(WaitResult::from_code(code)),
        }
    }

    /// Lets the thread look at its outcome. Called with no lock held.
    pub(crate) fn unpark(&self) {
        self.thread.unpark();
    }

    /// What there is to wake up for already.
    fn woken(&self) -> Option<Woken> {
        if let Some(result) = self.outcome() {
            Some(Woken::Settled(result))
        } else if self.nudged.load(Ordering::Relaxed) && self.nudged.swap(false, Ordering::Acquire) {
            Some(Woken::Nudged)
        } else if self.called_back.load(Ordering::Relaxed) && self.called_back.swap(false, Ordering::Acquire) {
            Some(Woken::CalledBack)
        } else if self.blocked.load(Ordering::Relaxed) == OVER {
            self.end_first_slice();
            Some(Woken::TimeOver)
        } else {
            None
        }
    }

    /// Blocks until there is something to wake up for, or until `until`. May only be called by the thread itself.
    pub(crate) fn park_until(&self, until: Timestamp) -> Woken {
        loop {
            if let Some(woken) = self.woken() {
                return woken;
            }
            // A limit, however far away, is a timer that the system has to set.
            if until == Timestamp::NEVER {
                park();
                continue;
            }
            let left = until.duration_since(now());
            if left.is_zero() {
                return Woken::TimeOver;
            }
            park_timeout(left);
        }
    }
}
