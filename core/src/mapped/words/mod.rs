//! Words of memory that several processes share: who has what of them, and who waits.
//!
//! Each word that a lock is on, or that somebody awaits, has a record in the file's table. The line in front is the
//! process's own; its record says which processes have one, and what each of them has of the word.
//!
//! # What a death leaves
//! | word of a | truth | written | after a death |
//! |---|---|---|---|
//! | lock | `owner`: HELD and the process | by one exchange | the word is freed, `died` is set |
//! | others | `shares`: what each process has of the value | while `owner` is the process | its share is 0, the word is the sum |
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

mod owner;
mod turns;

pub use owner::held_by;

use std::sync::OnceLock;

use super::{MOST_PROCESSES, ProcessId};
use crate::queue::Location;
use crate::queue::other_processes::{self, OtherProcesses};
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
        let (key, owner, died, waiting, turn, first_notified, notifies) = Default::default();
        let shares = std::array::from_fn(|_| AtomicI32::default());
        let waits = std::array::from_fn(|_| AtomicU64::default());
        Self { key, owner, died, waiting, turn, first_notified, notifies, shares, waits }
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

impl<'a> SharedWord<'a> {
    pub fn record(&self) -> &'a Record {
        &self.table.records[self.index]
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

const SHORTEST_TABLE: usize = 64;
const LONGEST_TABLE: usize = 1024;

/// The records of a file.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    records: &'a [Record],
    /// For each record, which processes it has news for. They are apart so that a process finds its own soon.
    news: &'a [AtomicU64],
}

fn records_for(data_bytes: usize) -> usize {
    (data_bytes / 64).clamp(SHORTEST_TABLE, LONGEST_TABLE).next_power_of_two()
}

pub fn table_bytes(data_bytes: usize) -> usize {
    records_for(data_bytes) * (size_of::<Record>() + size_of::<AtomicU64>())
}

impl<'a> Table<'a> {
    /// # Safety
    /// `start` begins so many bytes as [`table_bytes`] says, aligned to 64 and 0 at first, that live as long as `'a` and
    /// are only written by this module.
    #[cfg(not(feature = "model"))]
    #[allow(unsafe_code, reason = "a table in mapped memory")]
    pub unsafe fn from_raw(start: *const u8, data_bytes: usize) -> Self {
        let count = records_for(data_bytes);
        // SAFETY: as the caller promises; both arrays are within these bytes, and of atomics, for which any bytes do.
        unsafe {
            let records: &[Record] = std::slice::from_raw_parts(start.cast(), count);
            let news = std::slice::from_raw_parts(records.as_ptr_range().end.cast(), count);
            Self { records, news }
        }
    }

    /// Makes a table of memory that this process has alone: for tests.
    pub const fn of_parts(news: &'a [AtomicU64], records: &'a [Record]) -> Self {
        Self { records, news }
    }

    /// Looks at the records from that of an offset on: the index of its own, or of the first free one.
    fn search(self, key: u64) -> Option<(usize, bool)> {
        let length = self.records.len();
        let start = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize;
        (0..length).map(|step| start.wrapping_add(step) % length).find_map(|index| {
            match self.records[index].key.load(Ordering::SeqCst) {
                0 => Some((index, false)),
                found => (found == key).then_some((index, true)),
            }
        })
    }

    /// Finds the record of the word at an offset, in words.
    pub fn find(self, offset: usize) -> Option<usize> {
        self.search(offset as u64 + 1).and_then(|(index, is_its)| is_its.then_some(index))
    }

    /// Finds or makes the record of a word. `None`: there are too many.
    pub fn find_or_make(self, offset: usize) -> Option<usize> {
        let key = offset as u64 + 1;
        loop {
            let (index, is_its) = self.search(key)?;
            let found = &self.records[index].key;
            if is_its || found.compare_exchange(0, key, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return Some(index);
            }
        }
    }

    /// Returns the offset of a record's word, in words: it is input.
    fn offset(self, index: usize) -> Option<usize> {
        usize::try_from(self.records[index].key.load(Ordering::SeqCst)).ok()?.checked_sub(1)
    }

    /// Takes the news for a process: the offsets of words.
    pub fn take_news(self, process: ProcessId) -> Vec<usize> {
        let mask = process.mask();
        let takes = |&index: &usize| {
            let news = &self.news[index];
            news.load(Ordering::SeqCst) & mask != 0 && news.fetch_and(!mask, Ordering::SeqCst) & mask != 0
        };
        (0..self.records.len()).filter(takes).filter_map(|index| self.offset(index)).collect()
    }

    /// Lists the offsets of the words that a process awaits.
    pub fn awaited_by(self, process: ProcessId) -> Vec<usize> {
        let awaits = |record: &Record| {
            record.waiting.load(Ordering::SeqCst) & process.mask() != 0
                || record.waits[process.index()].load(Ordering::SeqCst) != 0
        };
        let awaited = (0..self.records.len()).filter(|&index| awaits(&self.records[index]));
        awaited.filter_map(|index| self.offset(index)).collect()
    }

    /// Tells a process that a record has news for it.
    pub(super) fn tell(self, record: usize, process: usize, peers: &dyn Peers) {
        let mask = 1 << process;
        // If it was told before, it has not looked yet.
        if self.news[record].fetch_or(mask, Ordering::SeqCst) & mask == 0 {
            peers.ring(process);
        }
    }

    /// Takes back all that a dead process has. `word` gives the word at an offset, if it is one of the data. It can be
    /// called again.
    pub fn sweep(self, dead: ProcessId, peers: &'a dyn Peers, word: impl Fn(usize) -> Option<&'a AtomicI32>) {
        for index in 0..self.records.len() {
            if let Some(word) = self.offset(index).and_then(&word) {
                SharedWord { table: self, index, word, peers }.sweep(dead);
            }
        }
        for news in self.news {
            news.fetch_and(!dead.mask(), Ordering::SeqCst);
        }
    }
}

static MEMORIES: OnceLock<&'static dyn Memories> = OnceLock::new();

/// The memories that this process shares with others.
pub trait Memories: OtherProcesses {
    /// Returns the word at a location, with its record; `makes` that. `None`: it is in none of them, or there is no room.
    fn word(&self, location: Location, makes: bool) -> Option<SharedWord<'static>>;
}

/// Sets the memories. Only the first call counts.
pub fn connect(memories: &'static dyn Memories) {
    let _ = MEMORIES.set(memories);
    other_processes::connect(memories);
}

/// Whether this process has any memory that several processes may have.
pub fn maps_memory() -> bool {
    MEMORIES.get().is_some()
}

/// Returns the word at a location if other processes may have it. It has a record then.
#[inline]
pub fn shared_word(location: Location) -> Option<SharedWord<'static>> {
    MEMORIES.get()?.word(location, false)
}

/// Returns the pid of the process that has a shared word alone; 0: unknown. `None`: there is none.
pub fn owner_of(location: Location) -> Option<u32> {
    let word = shared_word(location)?;
    word.owner().map(|slot| word.peers.pid(slot))
}

/// Names the other process that has a shared word alone.
pub fn holder_text(location: Location) -> Option<String> {
    let word = shared_word(location)?;
    let slot = word.owner().filter(|&slot| slot != word.me().index())?;
    Some(match word.peers.pid(slot) {
        0 => "another process".to_owned(),
        pid => format!("process {pid}"),
    })
}
