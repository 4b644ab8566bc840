//! Words that exclude: what claims ask of them, what threads have of them, and how they change.
//!
//! An entry of a thread's robust list keeps what it has. It has a serial number, too: that tells a hold from all others
//! of its thread, wherever the entry is in the list, and with the agent's number from all others of the process.

use crate::sync::{AtomicI32, Ordering};

pub const UNLOCKED: i32 = 0;
pub const LOCKED: i32 = 1;
/// The word of a read-write lock that a writer holds.
pub const WRITING: i32 = -1;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Together with others that want it so.
    Shared,
    Exclusive,
}

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

/// A word of a lock, read-write lock or semaphore. Implemented by shared memory, and by loom's atomics in models.
pub trait Word {
    /// Reads the word, `SeqCst`.
    fn load(&self) -> i32;
    /// Writes `new` if the word holds `current`, `SeqCst`. Returns whether it wrote.
    fn compare_exchange(&self, current: i32, new: i32) -> bool;

    // What follows differs for a word that several processes share.

    /// Whether it would grant the request now.
    fn grants(&self, request: Request) -> bool {
        request.taken_from(self.load()).is_some()
    }

    /// Takes the request. Returns whether the word granted it.
    fn take(&self, request: Request) -> bool {
        change(self, |current| request.taken_from(current))
    }

    /// Gives the hold back.
    fn give_back(&self, hold: Hold) {
        change(self, |current| Some(hold.given_back_to(current)));
    }

    /// Whether it is to be freed, and not handed over: another process has waited for long enough.
    fn is_due_elsewhere(&self) -> bool {
        false
    }

    /// Whether a process is known to have it. When that gives it back, it tells the others.
    fn has_known_holder(&self) -> bool {
        false
    }

    /// Notes a death for the next exclusive holder in any process. Returns false if the line does so.
    fn note_death(&self) -> bool {
        false
    }

    /// Returns whether there was such a note; an exclusive holder removes it.
    fn take_note_of_death(&self, _: Mode) -> bool {
        false
    }
}

impl Word for AtomicI32 {
    fn load(&self) -> i32 {
        self.load(Ordering::SeqCst)
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        self.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// Replaces the word's value by `next` of it, unless that is `None`. Returns whether it wrote.
pub(super) fn change(word: &(impl Word + ?Sized), next: impl Fn(i32) -> Option<i32>) -> bool {
    loop {
        let current = word.load();
        match next(current) {
            None => return false,
            Some(next) if word.compare_exchange(current, next) => return true,
            Some(_) => {}
        }
    }
}
