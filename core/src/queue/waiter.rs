//! A waiter, and how it is woken.

use super::BlockedThread;
use super::outbox::Outbox;
use crate::sync::Arc;

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
