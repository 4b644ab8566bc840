//! The records of a file, and the news of processes.

#![allow(unsafe_code, reason = "a table in mapped memory")]

use super::{Peers, Record, SharedWord};
use crate::mapped::ProcessId;
use crate::sync::{AtomicI32, AtomicU64, Ordering};

const SHORTEST_TABLE: usize = 64;
const LONGEST_TABLE: usize = 1024;

/// The records of a file.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    records: &'a [Record],
    /// For each record, which processes it has news for. They are apart so that a process finds its own soon.
    news: &'a [AtomicU64],
}

/// Returns how many records there are for so many bytes of data.
const fn records_for(data_bytes: usize) -> usize {
    let wanted = data_bytes / 64;
    let most = if wanted < LONGEST_TABLE { wanted } else { LONGEST_TABLE };
    if most < SHORTEST_TABLE { SHORTEST_TABLE } else { most.next_power_of_two() }
}

/// Returns the bytes of the table for so many bytes of data.
pub const fn table_bytes(data_bytes: usize) -> usize {
    records_for(data_bytes) * (size_of::<Record>() + size_of::<AtomicU64>())
}

impl<'a> Table<'a> {
    /// Makes the view of a table.
    ///
    /// # Safety
    /// `start` begins so many bytes as [`table_bytes`] says, aligned to 64 and 0 at first, that live as long as `'a` and
    /// are only written by this module.
    #[cfg(not(feature = "model"))]
    pub const unsafe fn from_raw(start: *const u8, data_bytes: usize) -> Self {
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

    /// Returns a record.
    pub fn record(self, index: usize) -> &'a Record {
        &self.records[index]
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
            match self.search(key)? {
                (index, true) => return Some(index),
                (index, false) => {
                    let free = &self.records[index].key;
                    match free.compare_exchange(0, key, Ordering::SeqCst, Ordering::SeqCst) {
                        Ok(_) => return Some(index),
                        Err(found) if found == key => return Some(index),
                        Err(_) => {}
                    }
                }
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
