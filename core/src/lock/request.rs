//! What claims ask of their words, and taking.

use super::hold::{Hold, Mode};
use super::word::{LOCKED, UNLOCKED, WRITING};

/// What a claim asks of its word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
// So it is passed in two registers.
#[repr(align(8))]
pub enum Request {
    Lock,
    /// To read under a read-write lock.
    Shared,
    /// To write under a read-write lock.
    Exclusive,
    /// So many permits, which return to the semaphore when their holder dies.
    Permits(u32),
    /// So many permits of a semaphore that has a limit; they return when their holder dies.
    Limited {
        amount: u32,
        /// How many may be taken together.
        limit: u32,
    },
    /// To have a named lock. The number distinguishes the request from all others of the process.
    Named(Mode, u32),
    /// To lock a lock that a queue uses within its steps. It is held for a moment, and users do not see it.
    Inner,
    /// So many permits, which have no holder once they are taken.
    Signals(u32),
}

impl Request {
    /// Makes a request of the numbers that `lib/holding/` passes: kind; amount or id; the limit, if any.
    pub const fn from_code(kind: u32, amount: u32, limit: u32) -> Self {
        match kind {
            0 => Self::Lock,
            1 => Self::Shared,
            2 => Self::Exclusive,
            3 => Self::Permits(amount),
            4 => Self::Signals(amount),
            5 => Self::Named(Mode::Shared, amount),
            6 => Self::Named(Mode::Exclusive, amount),
            11 => Self::Limited { amount, limit },
            _ => Self::Inner,
        }
    }

    /// Returns what it has of its word once that has granted it.
    pub const fn hold(self) -> Hold {
        match self {
            Self::Lock => Hold::Lock,
            Self::Shared => Hold::Shared,
            Self::Exclusive => Hold::Exclusive,
            Self::Permits(amount) | Self::Signals(amount) => Hold::Permits(amount),
            Self::Limited { amount, .. } => Hold::Limited(amount),
            Self::Named(mode, id) => Hold::Named(mode, id),
            Self::Inner => Hold::Inner,
        }
    }

    /// Whether it is for a lock, where a newcomer may overtake.
    pub const fn is_for_lock(self) -> bool {
        matches!(self, Self::Lock | Self::Inner)
    }

    /// Whether a claim with this request lets no other overtake it.
    pub(super) const fn is_strict(self) -> bool {
        !self.is_for_lock()
    }

    /// Whether users see it: in snapshots, among waits, in cycles.
    pub const fn is_visible(self) -> bool {
        !matches!(self, Self::Inner)
    }

    /// Whether the thread that took it holds it: by an entry of its robust list.
    pub const fn is_owned(self) -> bool {
        !matches!(self, Self::Signals(_))
    }

    /// Whether such a claim waits for holders, and for nothing else.
    pub const fn waits_for_holders(self) -> bool {
        !matches!(self, Self::Permits(_) | Self::Signals(_))
    }

    /// Whether it excludes every other request.
    pub const fn is_exclusive(self) -> bool {
        self.hold().is_exclusive()
    }

    /// Returns how the lock is wanted; `None` if it is no lock.
    pub const fn mode(self) -> Option<Mode> {
        self.hold().mode()
    }

    /// Returns the number of a request for a named lock.
    pub const fn id(self) -> Option<u32> {
        self.hold().id()
    }

    /// Returns the word's value after this was taken from `current`; `None` if it cannot be taken.
    pub(crate) fn taken_from(self, current: i32) -> Option<i32> {
        match self {
            Self::Lock | Self::Inner => (current == UNLOCKED).then_some(LOCKED),
            Self::Exclusive | Self::Named(Mode::Exclusive, _) => (current == UNLOCKED).then_some(WRITING),
            Self::Shared | Self::Named(Mode::Shared, _) => current.checked_add(1).filter(|&readers| readers > 0),
            Self::Permits(amount) | Self::Signals(amount) => {
                i32::try_from(amount).ok().and_then(|amount| current.checked_sub(amount)).filter(|&left| left >= 0)
            }
            Self::Limited { amount, limit } => {
                // A negative word, which only a program can have written, counts as 0.
                current.max(0).checked_add_unsigned(amount).filter(|&taken| taken.unsigned_abs() <= limit)
            }
        }
    }
}
