//! A waiter: how its wait ends, how a thread that blocks sleeps until then, and how it is woken.
//!
//! The thread that removes a waiter records the result under the bucket's lock, and wakes the waiter afterwards, with no
//! lock held (invariants 2 and 5). So a late unpark of an earlier wait is harmless: the waiter finds no result and
//! sleeps on.

use super::Ring;
use super::outbox::Outbox;
use crate::clock::{Timestamp, now};
use crate::sync::{Arc, AtomicBool, AtomicU8, Ordering, Thread, current, park, park_timeout};

#[derive(Clone, Debug)]
pub enum Waiter {
    Thread(Arc<BlockedThread>),
    /// A promise: the outbox of its agent, and its slot there.
    Agent(Arc<Outbox>, u32),
}

impl Waiter {
    pub(crate) const fn blocks(&self) -> bool {
        matches!(self, Self::Thread(_))
    }

    /// Whether both are the same thread, or one slot of one agent.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Thread(a), Self::Thread(b)) => Arc::ptr_eq(a, b),
            (_, Self::Agent(outbox, slot)) => self.is_promise(outbox, *slot),
            _ => false,
        }
    }

    pub(crate) fn is_of(&self, outbox: &Arc<Outbox>) -> bool {
        matches!(self, Self::Agent(its, _) if Arc::ptr_eq(its, outbox))
    }

    pub(super) fn is_promise(&self, outbox: &Arc<Outbox>, slot: u32) -> bool {
        matches!(self, Self::Agent(its, its_slot) if *its_slot == slot && Arc::ptr_eq(its, outbox))
    }

    fn wake(&self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Agent(outbox, _) => outbox.ring(),
        }
    }
}

/// A waiter and its claim. `C`: a request, which the queue only carries.
#[derive(Clone, Debug)]
pub struct Listed<C> {
    pub waiter: Waiter,
    /// Its request, if it wants more than a notification.
    pub claim: Option<C>,
}

impl<C> Listed<C> {
    /// Whether it is a promise that waits for a notification.
    pub(super) const fn is_plain_promise(&self) -> bool {
        self.claim.is_none() && !self.waiter.blocks()
    }
}

/// Whether an unserved waiter that left leaves something to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Successor {
    /// The word may hold the next one's request, and nobody else wakes it.
    ToBeWoken,
    /// No other waiter is concerned.
    Unconcerned,
}

/// Wakes its members when it is dropped.
#[derive(Default)]
pub(crate) struct Wakes(pub(super) Vec<Waiter>);

impl Wakes {
    /// Leaves the ring to the agent with this outbox, which is running. Returns whether it would have been rung.
    pub(crate) fn withhold(&mut self, outbox: &Arc<Outbox>) -> bool {
        let before = self.0.len();
        self.0.retain(|waiter| !waiter.is_of(outbox));
        self.0.len() < before
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.0.iter().for_each(Waiter::wake);
    }
}

/// The result of a wait. JavaScript knows the numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum WaitResult {
    /// `"ok"`: the waiter was notified.
    Ok = 0,
    /// `"not-equal"`: the word held another value, so there was no wait.
    NotEqual = 1,
    /// `"timed-out"`: the deadline came first.
    TimedOut = 2,
    // 3 is an operation's answer while the wait is pending.
    /// A claim has its request.
    Acquired = 4,
    /// A claim has its request, and the former holder died with it.
    AcquiredFromDead = 5,
    // 6 and 7 are an operation's answers when it fails.
    /// The deadline of a promise has come, and a job of its agent decides the outcome
    /// ([`super::store::WaiterListStore::decide`]). JavaScript never sees it.
    Due = 8,
}

impl WaitResult {
    pub(super) fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::NotEqual,
            2 => Self::TimedOut,
            4 => Self::Acquired,
            _ => Self::AcquiredFromDead,
        }
    }

    /// Whether a claim has its request.
    pub const fn is_acquired(self) -> bool {
        matches!(self, Self::Acquired | Self::AcquiredFromDead)
    }
}

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
    pub fn current() -> Self {
        let (retries, interrupted, blocked) = Default::default();
        Self { result: AtomicU8::new(WAITING), retries, interrupted, blocked, thread: current() }
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
