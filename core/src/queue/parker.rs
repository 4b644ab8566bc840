//! A thread that blocks: how its result reaches it, and how it sleeps until then.
//!
//! The thread that removes a waiter records the result under the bucket's lock, and unparks the waiter afterwards, with
//! no lock held (invariants 2 and 5). So a late unpark of an earlier wait is harmless: the waiter finds no result and
//! sleeps on.

use super::{Ring, WaitResult};
use crate::clock::{Timestamp, now};
use crate::sync::{AtomicBool, AtomicU8, Ordering, Thread, current, park, park_timeout};

/// No result yet.
const WAITING: u8 = u8::MAX;

/// The part of a blocked thread that other threads see. Made once per thread, and used for all its waits.
#[derive(Debug)]
pub struct BlockedThread {
    result: AtomicU8,
    retries: AtomicBool,
    interrupted: AtomicBool,
    blocked: AtomicBool,
    thread: Thread,
}

/// Why a blocked thread woke up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    Settled(WaitResult),
    Retry,
    /// It has slept as long as it may.
    TimeOver,
    /// Its event loop has been signalled, perhaps to end the thread.
    Interrupted,
}

impl BlockedThread {
    /// Makes the record of the calling thread.
    pub fn current() -> Self {
        Self {
            result: AtomicU8::new(WAITING),
            retries: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            thread: current(),
        }
    }

    /// Clears the result of the last wait. Called in the critical section in which the thread is appended.
    pub(crate) fn reset(&self) {
        self.result.store(WAITING, Ordering::Relaxed);
        self.retries.store(false, Ordering::Relaxed);
    }

    /// Records the result. Called in the critical section in which the waiter was removed.
    pub(crate) fn settle(&self, result: WaitResult) -> Ring {
        // Release: a thread that reads the result sees all earlier writes of the notifying thread.
        self.result.store(result as u8, Ordering::Release);
        Ring::Needed
    }

    /// Records that its claim is to retry. Called in the critical section in which it is woken.
    pub(crate) fn retry(&self) -> Ring {
        self.retries.store(true, Ordering::Release);
        Ring::Needed
    }

    /// Makes the thread return from `park_until` although its wait has not ended. Called by the service.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
        self.unpark();
    }

    /// Notes whether the thread is blocked from here on. Called by the thread itself.
    pub fn set_blocked(&self, blocked: bool) {
        self.blocked.store(blocked, Ordering::Relaxed);
    }

    pub fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    pub fn result(&self) -> Option<WaitResult> {
        match self.result.load(Ordering::Acquire) {
            WAITING => None,
            code => Some(WaitResult::from_code(code)),
        }
    }

    /// Wakes the thread. Called with no lock held.
    pub(crate) fn unpark(&self) {
        self.thread.unpark();
    }

    /// Returns the reason to wake up that there is already.
    fn woken(&self) -> Option<Woken> {
        if let Some(result) = self.result() {
            Some(Woken::Settled(result))
        } else if self.retries.load(Ordering::Relaxed) && self.retries.swap(false, Ordering::Acquire) {
            Some(Woken::Retry)
        } else if self.interrupted.load(Ordering::Relaxed) && self.interrupted.swap(false, Ordering::Acquire) {
            Some(Woken::Interrupted)
        } else {
            None
        }
    }

    /// Blocks until there is a reason to wake up, or until `until`. Called by the thread itself.
    pub(crate) fn park_until(&self, until: Timestamp) -> Woken {
        loop {
            if let Some(woken) = self.woken() {
                return woken;
            }
            // A limit, however far away, would be a timer that the system sets.
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
