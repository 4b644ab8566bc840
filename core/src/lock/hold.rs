//! What a thread has of a word, and giving it back. An entry of its robust list keeps this.
//!
//! An entry has a serial number, too: it tells a hold from all others of its thread, wherever the entry is in the list,
//! and with the agent's number from all others of the process.

use super::word::UNLOCKED;

/// How a lock is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Together with others that want it so.
    Shared,
    Exclusive,
}

/// What a thread has of a word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hold {
    Lock,
    /// A reader's share of a read-write lock.
    Shared,
    /// A writer's access to a read-write lock.
    Exclusive,
    Permits(u32),
    /// So many permits of a semaphore that has a limit: its word counts those that are taken.
    Limited(u32),
    /// A named lock, by the number of the request for it.
    Named(Mode, u32),
    /// A lock that a queue uses within its steps. It is held for a moment, and users do not see it.
    Inner,
    /// A message of a queue in use: a word that is 0 if nobody has it. The queue's events are so many words before it,
    /// and are raised if the thread dies.
    Lease(u32),
    /// Nothing: the thread owes those who wait for a queue's events that these be raised. So if it dies, they are: one
    /// pair, or, if there is a number, all of the queue, of which those of putters are so many words behind the first.
    Owed(u32),
    /// A place in the count of those that wait to put into a queue, whose events are so many words before the count.
    Putter(u32),
    /// The same; and the thread blocks without a timeout, and changes nothing that it holds before it tries again.
    BlockedPutter(u32),
}

/// How many kinds there is room for.
const KINDS: u64 = 16;

/// Packs a kind and an amount, as `lib/holding/request.js` does.
pub const fn pack(kind: u32, amount: u32) -> u64 {
    kind as u64 + KINDS * amount as u64
}

pub const fn amount_of(packed: u64) -> u64 {
    packed / KINDS
}

impl Hold {
    /// Makes a hold from one number: see [`pack`].
    pub const fn from_packed(number: u64) -> Self {
        let amount = amount_of(number) as u32;
        match number % KINDS {
            0 => Self::Lock,
            1 => Self::Shared,
            2 => Self::Exclusive,
            3 => Self::Permits(amount),
            5 => Self::Named(Mode::Shared, amount),
            6 => Self::Named(Mode::Exclusive, amount),
            8 => Self::Inner,
            9 => Self::Lease(amount),
            11 => Self::Limited(amount),
            12 => Self::Putter(amount),
            13 => Self::BlockedPutter(amount),
            _ => Self::Owed(amount),
        }
    }

    /// Returns one number: see [`pack`].
    pub const fn packed(self) -> u64 {
        match self {
            Self::Lock => pack(0, 0),
            Self::Shared => pack(1, 0),
            Self::Exclusive => pack(2, 0),
            Self::Permits(amount) => pack(3, amount),
            Self::Named(Mode::Shared, id) => pack(5, id),
            Self::Named(Mode::Exclusive, id) => pack(6, id),
            Self::Inner => pack(8, 0),
            Self::Lease(words) => pack(9, words),
            Self::Owed(words) => pack(10, words),
            Self::Limited(amount) => pack(11, amount),
            Self::Putter(words) => pack(12, words),
            Self::BlockedPutter(words) => pack(13, words),
        }
    }

    /// Whether it is of a lock, where a newcomer may overtake.
    pub const fn is_of_lock(self) -> bool {
        matches!(self, Self::Lock | Self::Inner)
    }

    /// Whether users see it: in snapshots, among holders, in cycles.
    pub const fn is_visible(self) -> bool {
        !matches!(self, Self::Inner | Self::Owed(_) | Self::Putter(_) | Self::BlockedPutter(_))
    }

    /// Whether it excludes every other one: its holder's death may leave work half done.
    pub const fn is_exclusive(self) -> bool {
        matches!(self.mode(), Some(Mode::Exclusive))
    }

    /// Returns how the lock is held; `None` if it is no lock.
    pub const fn mode(self) -> Option<Mode> {
        match self {
            Self::Lock | Self::Inner | Self::Exclusive => Some(Mode::Exclusive),
            Self::Shared => Some(Mode::Shared),
            Self::Named(mode, _) => Some(mode),
            _ => None,
        }
    }

    /// Returns the number of the request for a named lock.
    pub const fn id(self) -> Option<u32> {
        match self {
            Self::Named(_, id) => Some(id),
            _ => None,
        }
    }

    /// Adds `other`, of the same word and thread, to this; `None` if the two are not counted together.
    pub fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Limited(amount), Self::Limited(more)) => Some(Self::Limited(amount.saturating_add(more))),
            _ => None,
        }
    }

    /// Computes the word's value after this is given back to `current`.
    pub(crate) fn given_back_to(self, current: i32) -> i32 {
        match self {
            Self::Lock | Self::Inner | Self::Lease(_) | Self::Exclusive | Self::Named(Mode::Exclusive, _) => UNLOCKED,
            Self::Shared | Self::Named(Mode::Shared, _) | Self::Putter(_) | Self::BlockedPutter(_) => {
                current.saturating_sub(1).max(0)
            }
            Self::Permits(amount) => current.saturating_add_unsigned(amount),
            Self::Limited(amount) => current.saturating_sub_unsigned(amount).max(0),
            Self::Owed(_) => current,
        }
    }
}
