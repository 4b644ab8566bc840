//! Words of memory that several processes share: who has what of them, and who waits.
//!
//! Each word that a lock is on, or that somebody awaits, has a record in the file's table. The line in front is the
//! process's own; its record says which processes have one, and what each of them has of the word.
//!
//! # What a death leaves
//! | word of a | truth | written | after a death |
//! |---|---|---|---|
//! | lock | `owner`: HELD and the process | by one exchange | the word is freed, `died` is set |
//! | read-write lock, semaphore | `shares`: of the word's value, what each process has | while `owner` is the process | the
//! dead one's is 0, the word is the sum |
//!
//! So a death at any step leaves either what was before it or what was to come. `owner` without HELD is held for some
//! instructions; who finds that its process is gone takes it over, and makes the word the sum.
//!
//! # Why no release is missed
//! A process raises its bit in `waiting` before it tries for the last time. One that frees the word does so before it
//! reads `waiting`, and then rings the process whose turn it is ([`turns`]). That one takes the word and later frees
//! it, or finds it held by one that will free it, or leaves `waiting` and then passes the turn on itself. If it dies, who
//! sweeps rings all that wait.
//!
//! # Notifications
//! `waits[p]` has how many waiters process p has, and how many of them other processes have notified. A notification
//! raises the latter by one exchange, never above the former; so it is counted once, and p delivers it. A waiter that
//! gives up while all that are left are notified is itself notified.

pub mod memories;
mod owner;
mod sweep;
mod table;
mod turns;
mod waits;

pub use owner::held_by;
pub use table::{Table, table_bytes};

use super::{MOST_PROCESSES, ProcessId};
use crate::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// In a model fewer, since each is an object of it.
const SLOTS: usize = if cfg!(feature = "model") { 3 } else { MOST_PROCESSES };

/// The other processes, and the clock that all have.
pub trait Peers: Sync {
    fn me(&self) -> ProcessId;
    /// Wakes the process in this slot: it then looks at its news.
    fn ring(&self, index: usize);
    /// Whether a process is certainly dead.
    fn is_gone(&self, process: ProcessId) -> bool;
    /// The time in microseconds, the same for all processes.
    fn now(&self) -> u64;
    /// Returns the pid of the process in this slot; 0: unknown.
    fn pid(&self, index: usize) -> u32;
    /// Called before each change, unless built for a release: tests let the process die there.
    fn step(&self) {}
}

/// What the processes know of a word.
#[repr(C, align(64))]
pub struct Record {
    /// The word's offset in words, and one; 0: nobody uses the record.
    key: AtomicU64,
    owner: AtomicU32,
    /// Whether an exclusive holder has died, and nobody has seen it.
    died: AtomicU32,
    /// The processes that have claims.
    waiting: AtomicU64,
    turn: AtomicU64,
    /// The process that a notification begins with.
    first_notified: AtomicU32,
    /// Whether anybody has ever waited without a claim: then whoever frees the word notifies.
    notifies: AtomicU32,
    shares: [AtomicI32; SLOTS],
    waits: [AtomicU64; SLOTS],
}

/// As `lib/holding/shared-word.js` finds them, in units of four bytes: it takes and frees a lock without a call.
#[cfg(not(feature = "model"))]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Record, owner) == 4 * 2 && offset_of!(Record, died) == 4 * 3);
    assert!(offset_of!(Record, waiting) == 4 * 4 && offset_of!(Record, turn) == 4 * 6);
    assert!(offset_of!(Record, notifies) == 4 * 9);
};

/// Only tests make one: those of a file begin as zeros.
impl Default for Record {
    fn default() -> Self {
        Self {
            key: AtomicU64::default(),
            owner: AtomicU32::default(),
            died: AtomicU32::default(),
            waiting: AtomicU64::default(),
            turn: AtomicU64::default(),
            first_notified: AtomicU32::default(),
            notifies: AtomicU32::default(),
            shares: std::array::from_fn(|_| AtomicI32::default()),
            waits: std::array::from_fn(|_| AtomicU64::default()),
        }
    }
}

/// A word that several processes share, seen by one of them. Its process changes it in one thread at a time.
#[derive(Clone, Copy)]
pub struct SharedWord<'a> {
    pub table: Table<'a>,
    /// Of its record.
    pub index: usize,
    pub word: &'a AtomicI32,
    pub peers: &'a dyn Peers,
}

impl SharedWord<'_> {
    fn record(&self) -> &Record {
        self.table.record(self.index)
    }

    fn me(&self) -> ProcessId {
        self.peers.me()
    }

    fn step(&self) {
        if cfg!(debug_assertions) {
            self.peers.step();
        }
    }

    fn others_waiting(&self) -> u64 {
        self.record().waiting.load(Ordering::SeqCst) & !self.me().mask()
    }
}

/// Replaces a number by `next` of it, unless that is `None`. Returns the number before.
fn update(number: &AtomicU64, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    number.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok()
}
