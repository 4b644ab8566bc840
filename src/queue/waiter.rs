//! A waiter, and how it is woken.

use super::outbox::Outbox;
use super::parker::BlockedThread;
use crate::sync::Arc;

/// A waiter. `G`: what the outbox says of a grant.
#[derive(Debug)]
pub enum Waiter<G> {
    /// A thread that blocks.
    Thread(Arc<BlockedThread>),
    /// A promise: the outbox of its agent, and its slot there.
    Agent(Arc<Outbox<G>>, u32),
}

impl<G> Waiter<G> {
    /// Whether a thread blocks.
    pub(crate) const fn blocks(&self) -> bool {
        matches!(self, Self::Thread(_))
    }

    /// Whether both are the same thread, or the same slot of the same agent.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Thread(a), Self::Thread(b)) => Arc::ptr_eq(a, b),
            (Self::Agent(a, m), Self::Agent(b, n)) => m == n && Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl<G> Clone for Waiter<G> {
    fn clone(&self) -> Self {
        match self {
            Self::Thread(thread) => Self::Thread(Arc::clone(thread)),
            Self::Agent(outbox, slot) => Self::Agent(Arc::clone(outbox), *slot),
        }
    }
}

/// What is woken after a critical section.
pub(crate) enum Wake<G> {
    Thread(Arc<BlockedThread>),
    Agent(Arc<Outbox<G>>),
}

impl<G> Wake<G> {
    fn wake(&self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Agent(outbox) => outbox.ring(),
        }
    }
}

/// Wakes its members when it is dropped.
pub(crate) struct Wakes<G> {
    // Most critical sections wake one waiter at most, so the first one needs no allocation.
    first: Option<Wake<G>>,
    rest: Vec<Wake<G>>,
}

impl<G> Default for Wakes<G> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<G> Wakes<G> {
    pub(super) fn push(&mut self, wake: Wake<G>) {
        match self.first {
            None => self.first = Some(wake),
            Some(_) => self.rest.push(wake),
        }
    }
}

impl<G> Drop for Wakes<G> {
    fn drop(&mut self) {
        for wake in self.first.iter().chain(&self.rest) {
            wake.wake();
        }
    }
}
