//! Words that exclude, requests to them, and taking and giving back.

use crate::sync::{AtomicI32, Ordering};

/// The word of a lock that is free.
pub const UNLOCKED: i32 = 0;
/// The word of a lock that is held.
pub const LOCKED: i32 = 1;
/// The word of a read-write lock that a writer holds.
pub const WRITING: i32 = -1;

/// A word of a lock, read-write lock or semaphore. Implemented by shared memory, and by loom's atomics in models.
pub trait Word {
    /// Reads the word, `SeqCst`.
    fn load(&self) -> i32;
    /// Writes `new` if the word holds `current`, `SeqCst`. Returns whether it wrote.
    fn compare_exchange(&self, current: i32, new: i32) -> bool;
}

impl Word for AtomicI32 {
    fn load(&self) -> i32 {
        self.load(Ordering::SeqCst)
    }

    fn compare_exchange(&self, current: i32, new: i32) -> bool {
        self.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// How a lock is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Together with others that want it so.
    Shared,
    /// Alone.
    Exclusive,
}

/// A claim's request to its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
// So it is passed in two registers.
#[repr(align(8))]
pub enum Request {
    /// To lock a lock.
    Lock,
    /// To read under a read-write lock.
    Shared,
    /// To write under a read-write lock.
    Exclusive,
    /// So many permits, which return to the semaphore when their holder dies.
    Permits(u32),
    /// So many permits, which have no holder once they are taken.
    Signals(u32),
    /// So many permits of a semaphore that has a limit; they return when their holder dies. An entry of a robust list
    /// keeps no limit: it has [`NO_LIMIT`], since only taking asks for it.
    Limited {
        /// How many permits.
        amount: u32,
        /// How many may be taken together.
        limit: u32,
    },
    /// To have a named lock. The number distinguishes the request from all others of the process.
    Named(Mode, u32),
    /// To lock a lock that a queue uses within its steps. It is held for a moment, and users do not see it.
    Inner,
    /// To have a message of a queue in use: a word that is 0 if nobody has. The queue's events are so many words before
    /// it, and are raised if the thread dies.
    Lease(u32),
    /// Nothing: the thread owes those who wait for a queue's events that these be raised. So if it dies, they are: one
    /// pair, or, if there is a number, all of the queue, of which those of putters are so many words behind the first.
    Debt(u32),
    /// To be counted among those that wait to put into a queue, whose events are so many words before the count.
    Putter(u32),
    /// The same; and the thread blocks without a timeout, and changes nothing that it holds before it tries again.
    BlockedPutter(u32),
}

/// In the place of a request's kind: a notification is awaited, and the amount is the number of the wait kind.
pub const AWAITS_NOTIFICATION: u32 = 7;

/// In the place of a limit where nothing is taken.
pub const NO_LIMIT: u32 = 0;

/// How many kinds there is room for.
const KINDS: u64 = 16;

/// Packs a kind and an amount, as `lib/holding/request.js` does.
pub const fn pack(kind: u32, amount: u32) -> u64 {
    kind as u64 + KINDS * amount as u64
}

/// Returns the amount in such a number.
pub const fn amount_of(packed: u64) -> u64 {
    packed / KINDS
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
            8 => Self::Inner,
            9 => Self::Lease(amount),
            11 => Self::Limited { amount, limit },
            12 => Self::Putter(amount),
            13 => Self::BlockedPutter(amount),
            _ => Self::Debt(amount),
        }
    }

    /// Makes a request from one number: see [`pack`].
    pub const fn from_packed(number: u64) -> Self {
        Self::from_code((number % KINDS) as u32, amount_of(number) as u32, NO_LIMIT)
    }

    /// Returns one number: see [`pack`].
    pub const fn packed(self) -> u64 {
        match self {
            Self::Lock => pack(0, 0),
            Self::Shared => pack(1, 0),
            Self::Exclusive => pack(2, 0),
            Self::Permits(amount) => pack(3, amount),
            Self::Signals(amount) => pack(4, amount),
            Self::Named(Mode::Shared, id) => pack(5, id),
            Self::Named(Mode::Exclusive, id) => pack(6, id),
            Self::Inner => pack(8, 0),
            Self::Lease(words) => pack(9, words),
            Self::Debt(words) => pack(10, words),
            Self::Limited { amount, .. } => pack(11, amount),
            Self::Putter(words) => pack(12, words),
            Self::BlockedPutter(words) => pack(13, words),
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

    /// Whether users see it: in snapshots, among holders, in cycles.
    pub const fn is_visible(self) -> bool {
        !matches!(self, Self::Inner | Self::Debt(_) | Self::Putter(_) | Self::BlockedPutter(_))
    }

    /// Whether the thread that took it holds it.
    pub const fn is_owned(self) -> bool {
        !matches!(self, Self::Signals(_) | Self::Debt(_))
    }

    /// Whether such a claim waits for holders, and for nothing else.
    pub const fn waits_for_holders(self) -> bool {
        self.mode().is_some() || matches!(self, Self::Limited { .. })
    }

    /// Whether it excludes every other request: its holder's death may leave work half done.
    pub const fn is_exclusive(self) -> bool {
        matches!(self.mode(), Some(Mode::Exclusive))
    }

    /// Returns how the lock is wanted; `None` if it is no lock.
    pub const fn mode(self) -> Option<Mode> {
        match self {
            Self::Lock | Self::Inner | Self::Exclusive => Some(Mode::Exclusive),
            Self::Shared => Some(Mode::Shared),
            Self::Named(mode, _) => Some(mode),
            Self::Permits(_)
            | Self::Signals(_)
            | Self::Limited { .. }
            | Self::Lease(_)
            | Self::Debt(_)
            | Self::Putter(_)
            | Self::BlockedPutter(_) => None,
        }
    }

    /// Returns the number of a request for a named lock.
    pub const fn id(self) -> Option<u32> {
        match self {
            Self::Named(_, id) => Some(id),
            _ => None,
        }
    }

    /// Adds `other`, of the same word and thread, to this; `None` if the two are not counted together.
    pub fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Limited { amount, limit }, Self::Limited { amount: more, .. }) => {
                Some(Self::Limited { amount: amount.saturating_add(more), limit })
            }
            _ => None,
        }
    }

    /// Returns the word's value after this was taken from `current`; `None` if it cannot be taken.
    fn taken_from(self, current: i32) -> Option<i32> {
        match self {
            Self::Lock | Self::Inner | Self::Lease(_) => (current == UNLOCKED).then_some(LOCKED),
            Self::Exclusive | Self::Named(Mode::Exclusive, _) => (current == UNLOCKED).then_some(WRITING),
            Self::Shared | Self::Named(Mode::Shared, _) => current.checked_add(1).filter(|&readers| readers > 0),
            Self::Permits(amount) | Self::Signals(amount) => {
                i32::try_from(amount).ok().and_then(|amount| current.checked_sub(amount)).filter(|&left| left >= 0)
            }
            Self::Limited { amount, limit } => {
                // A negative word, which only a program can have written, counts as 0.
                current.max(0).checked_add_unsigned(amount).filter(|&taken| taken.unsigned_abs() <= limit)
            }
            Self::Putter(_) | Self::BlockedPutter(_) => Some(current.wrapping_add(1)),
            Self::Debt(_) => Some(current),
        }
    }

    /// Computes the word's value after this is given back to `current`.
    fn given_back_to(self, current: i32) -> i32 {
        match self {
            Self::Lock | Self::Inner | Self::Lease(_) | Self::Exclusive | Self::Named(Mode::Exclusive, _) => UNLOCKED,
            Self::Shared | Self::Named(Mode::Shared, _) | Self::Putter(_) | Self::BlockedPutter(_) => {
                current.saturating_sub(1).max(0)
            }
            Self::Permits(amount) | Self::Signals(amount) => current.saturating_add_unsigned(amount),
            Self::Limited { amount, .. } => current.saturating_sub_unsigned(amount).max(0),
            Self::Debt(_) => current,
        }
    }

    pub(super) fn is_granted_by(self, word: &impl Word) -> bool {
        self.taken_from(word.load()).is_some()
    }

    /// Takes this from the word, whoever holds it. Only for names that are stolen.
    pub(super) fn overwrite(self, word: &impl Word) {
        change(word, |current| Some(self.taken_from(UNLOCKED).unwrap_or(current)));
    }

    /// Takes this from the word. Returns whether the word granted it.
    pub fn take(self, word: &impl Word) -> bool {
        change(word, |current| self.taken_from(current))
    }

    /// Gives this back to the word.
    pub fn give_back(self, word: &impl Word) {
        change(word, |current| Some(self.given_back_to(current)));
    }
}

/// Replaces the word's value by `next` of it, unless that is `None`. Returns whether it wrote.
fn change(word: &impl Word, next: impl Fn(i32) -> Option<i32>) -> bool {
    loop {
        let current = word.load();
        match next(current) {
            None => return false,
            Some(next) if word.compare_exchange(current, next) => return true,
            Some(_) => {}
        }
    }
}
