//! A thread that blocks for a word of shared memory: how its result reaches it, and how it sleeps until then.
//!
//! The result is recorded under the bucket's lock by whoever takes the waiter out of its list, and only afterwards,
//! with no lock held, the thread is unparked (invariants 2 and 5). A late unpark of an earlier wait is therefore
//! harmless: the thread looks at its result, finds none, and sleeps on.

use std::sync::atomic::AtomicU32;

use super::result::WaitResult;
use crate::clock::{Timestamp, now};
use crate::sync::{AtomicBool, AtomicU8, Ordering, Thread, current, park, park_timeout};
use crate::thread::processor;

/// No result yet.
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
    result: AtomicU8,
    retries: AtomicBool,
    interrupted: AtomicBool,
    blocked: AtomicU8,
    /// The processor on which the result was recorded; [`NOWHERE`] if that is not known.
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
    Retry,
    /// The time that it was to sleep at most has passed.
    TimeOver,
    /// It is to look whether it shall end.
    Interrupted,
}

impl BlockedThread {
    /// For the calling thread.
    pub fn current() -> Self {
        Self {
            result: AtomicU8::new(WAITING),
            retries: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            blocked: AtomicU8::new(AWAKE),
            settled_on: AtomicU32::new(NOWHERE),
            thread: current(),
        }
    }

    /// Forgets the last wait's result. Called by the thread itself, in the critical section in which it is appended.
    pub(crate) fn reset(&self) {
        self.result.store(WAITING, Ordering::Relaxed);
        self.retries.store(false, Ordering::Relaxed);
    }

    /// Records the result. Called in the critical section in which the waiter was removed.
    pub(crate) fn settle(&self, result: WaitResult) {
        self.settled_on.store(processor::current().unwrap_or(NOWHERE), Ordering::Relaxed);
        // Release: what the notifying thread wrote before is visible to the thread that reads the result.
        self.result.store(result as u8, Ordering::Release);
    }

    /// Whether the result came from the processor that the calling thread, the one that waited, runs on.
    #[cfg(not(feature = "model"))]
    pub(crate) fn was_settled_here(&self) -> bool {
        processor::current().is_some_and(|here| self.settled_on.load(Ordering::Relaxed) == here)
    }

    /// Records that its claim is to try. Called in the critical section in which it was found first in line.
    pub(crate) fn retry(&self) {
        self.retries.store(true, Ordering::Release);
    }

    /// Makes the thread come back from `park_until`, although its wait is not over. Called by the service.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
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

    /// The result, if the wait is over.
    pub fn result(&self) -> Option<WaitResult> {
        match self.result.load(Ordering::Acquire) {
            WAITING => None,
            code => Some(WaitResult::from_code(code)),
        }
    }

    /// Lets the thread look at its result. Called with no lock held.
    pub(crate) fn unpark(&self) {
        self.thread.unpark();
    }

    /// What there is to wake up for already.
    fn woken(&self) -> Option<Woken> {
        if let Some(result) = self.result() {
            Some(Woken::Settled(result))
        } else if self.retries.load(Ordering::Relaxed) && self.retries.swap(false, Ordering::Acquire) {
            Some(Woken::Retry)
        } else if self.interrupted.load(Ordering::Relaxed) && self.interrupted.swap(false, Ordering::Acquire) {
            Some(Woken::Interrupted)
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
