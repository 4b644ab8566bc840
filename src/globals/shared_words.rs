//! The words of shared memory: what the queue asks of their files, and what other processes ask of this one.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rustc_hash::FxHashSet;
use waitasync_core::mapped::ProcessId;
use waitasync_core::mapped::words::{self, Memories, Peers, Record, SharedWord, Table, connect};
use waitasync_core::queue::Location;
use waitasync_core::queue::other_processes::{OtherProcesses, SharedWaits};
use waitasync_core::sync::lock;

use super::{PROCESS, WordAt, claim_stays, word_at};
use crate::mapped::{Client, Mapping};

/// How often words without a record are looked at.
const POLL: Duration = Duration::from_millis(5);

pub(crate) fn start(mapping: &'static Mapping) -> Box<dyn Client> {
    connect(&Files);
    Box::new(Words(mapping))
}

/// Prepares a word for a lock. Returns its record, and the number of its owner if this process has the lock. `None`: the
/// table is full.
pub(crate) fn prepare(location: Location) -> Option<(&'static Record, u32)> {
    static PREPARED: Mutex<Option<FxHashSet<Location>>> = Mutex::new(None);
    let is_new = lock(&PREPARED).get_or_insert_default().insert(location);
    if is_new {
        // For ever: so JavaScript, which does not see the waiters of other processes, releases it by native code.
        PROCESS.store.counter(location).fetch_add(1, Ordering::SeqCst);
    }
    let word = Files.word(location, true)?;
    Some((word.record(), words::held_by(word.peers.me())))
}

fn table_of(mapping: &Mapping) -> Table<'static> {
    // SAFETY: the table is in the mapping, which is never unmapped, and `start` was given this length.
    unsafe { Table::from_raw(mapping.table().as_ptr(), mapping.data_bytes()) }
}

/// Returns the word at an offset of the data, in words.
fn word_in(mapping: &Mapping, offset: usize) -> Option<&'static AtomicI32> {
    let is_within = offset < mapping.data_bytes() / size_of::<i32>();
    // SAFETY: it is in the mapping (its invariant 1), whose data begin at a page.
    is_within.then(|| unsafe { mapping.data().cast::<AtomicI32>().add(offset).as_ref() })
}

/// The words that waiters here await without a record, since the table is full: what was there as the first one came.
/// Nobody can notify them from elsewhere.
static POLLED: Mutex<BTreeMap<Location, i32>> = Mutex::new(BTreeMap::new());

struct Words(&'static Mapping);

impl Words {
    /// Looks at the words at these offsets: whether waiters here were notified, or may take them.
    fn look_at(&self, offsets: Vec<usize>) {
        let start = self.0.data().as_ptr() as usize;
        for offset in offsets {
            if word_in(self.0, offset).is_none() {
                continue;
            }
            let location = Location::from_address(start + size_of::<i32>() * offset);
            PROCESS.store.deliver(location);
            let word = word_at(location);
            if PROCESS.store.check_word(location, &*word) == Some(false)
                && let WordAt::Shared(shared) = word
            {
                shared.answer();
                claim_stays(location, &word);
            }
        }
    }
}

impl Client for Words {
    fn rung(&'static self) {
        self.look_at(table_of(self.0).take_news(self.0.me()));
    }

    fn look_again(&'static self) {
        // Who dies before it rings leaves its news, and then nobody else rings for them.
        self.rung();
        self.look_at(table_of(self.0).awaited_by(self.0.me()));
    }

    fn sweep(&self, dead: ProcessId) {
        table_of(self.0).sweep(dead, self.0, |offset| word_in(self.0, offset));
    }

    fn due(&'static self) -> Option<Duration> {
        let words = lock(&POLLED).clone();
        for (&location, &value) in &words {
            if word_at(location).load() != value {
                PROCESS.store.notify(location, usize::MAX, None);
            }
        }
        (!words.is_empty()).then_some(POLL)
    }
}

/// The files of shared memory that this process has.
struct Files;

impl Memories for Files {
    fn word(&self, location: Location, makes: bool) -> Option<SharedWord<'static>> {
        let mapping = Mapping::at(location.address())?;
        let table = table_of(mapping);
        let offset = (location.address() - mapping.data().as_ptr() as usize) / size_of::<i32>();
        let index = if makes { table.find_or_make(offset) } else { table.find(offset) }?;
        Some(SharedWord { table, index, word: word_in(mapping, offset)?, peers: mapping })
    }
}

impl OtherProcesses for Files {
    fn share(&self, location: Location) -> bool {
        !location.is_of_process() && Mapping::at(location.address()).is_some()
    }

    fn waits_at(&self, location: Location, makes: bool) -> Option<Box<dyn SharedWaits>> {
        Some(Box::new(self.word(location, makes)?))
    }

    fn poll(&self, location: Location, polls: bool) {
        let mut words = lock(&POLLED);
        if polls {
            words.entry(location).or_insert_with(|| word_at(location).load());
            Mapping::ring_own();
        } else {
            words.remove(&location);
        }
    }
}
